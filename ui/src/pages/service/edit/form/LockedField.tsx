import { Badge, Button, CopyButton, Group, Popover, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Lock } from "lucide-react";
import { stringify } from "yaml";
import { part } from "../../../../api/queries";
import type { Schemas } from "../../../../api/types";
import { get, type Json, type Path, pathName } from "../../../../lib/document";
import { When } from "../../../../parts/When";
import { useForm } from "./context";

interface Props {
  path: Path;
  owner: "platform" | "security";
}

/** A field that another owner writes: what it is now, whose it is, and how to ask for something else. */
export function LockedField({ path, owner }: Props) {
  const { effective } = useForm();
  const value = effective && get(effective.document as Json, path);
  return (
    <fieldset className="field-frame locked">
      <legend className="visually-hidden">{pathName(path)}</legend>
      <Group justify="space-between" wrap="nowrap" align="flex-start">
        <Group gap="xs">
          <Lock size={13} aria-hidden />
          <Text size="sm" fw={600}>
            {path.at(-1)}
          </Text>
          <Badge color={owner === "security" ? "orange" : "grape"}>only {owner} writes this</Badge>
        </Group>
        <HowToAsk path={path} owner={owner} />
      </Group>
      {value === undefined || value === null ? (
        <Text size="sm" c="dimmed">
          Not set.
        </Text>
      ) : (
        <pre className="code">{typeof value === "object" ? stringify(value).trim() : String(value)}</pre>
      )}
    </fieldset>
  );
}

function HowToAsk({ path, owner }: Props) {
  const { service } = useForm();
  const own = useQuery(part(owner, service));
  const common = useQuery(part(owner));
  const last = readable(own.data) ?? readable(common.data);
  const field = pathName(path);
  const request = `Please look at ${field} of the service ${service} (${window.location.href}). What I need: `;
  return (
    <Popover width={380} position="bottom-end" trapFocus>
      <Popover.Target>
        <Button variant="default" size="compact-xs">
          How to ask
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <Stack gap="xs">
          <Text size="sm">
            <span className="mono">{field}</span> is in the document of {owner}, not in yours. Ask whoever has
            the role {owner}; they change it with{" "}
            <span className="mono">
              pcloud {owner} edit {service}
            </span>
            .
          </Text>
          {last && (
            <Text size="sm">
              Last edited by <strong>{last.author}</strong> <When ms={last.edited_unix_ms} />
              {last.reason && `: “${last.reason}”`}
            </Text>
          )}
          <CopyButton value={request}>
            {({ copied, copy }) => (
              <Button variant="default" onClick={copy}>
                {copied ? "Copied" : "Copy a request to send them"}
              </Button>
            )}
          </CopyButton>
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}

/** A part as JSON; the API also has it as YAML, for those who ask for that. */
function readable(data: Schemas["Part"] | string | null | undefined) {
  return typeof data === "object" ? data : undefined;
}
