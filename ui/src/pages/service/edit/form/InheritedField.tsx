import { Badge, Button, Group, Text } from "@mantine/core";
import { stringify } from "yaml";
import { get, type Path, pathName } from "../../../../lib/document";
import { useForm } from "./context";
import { inherited } from "./values";

/** A field that the document leaves to a default of platform or security: what that is, and saying otherwise. */
export function InheritedField({ path }: { path: Path }) {
  const { effective, value, set, locked } = useForm();
  const found = inherited(effective, path);
  if (!found || get(value, path) !== undefined) return null;
  const name = String(path.at(-1));
  return (
    <fieldset className="field-frame inherited">
      <legend className="visually-hidden">{pathName(path)}</legend>
      <Group justify="space-between" wrap="nowrap" gap="xs">
        <Group gap="xs">
          <Text size="sm" fw={600}>
            {name}
          </Text>
          <Badge color="gray">default of {found.origin.owner}</Badge>
          <span className="mono">
            {typeof found.value === "object" ? stringify(found.value).trim() : String(found.value)}
          </span>
        </Group>
        {!locked && (
          <Button variant="subtle" size="compact-xs" onClick={() => set(path, found.value)}>
            Say otherwise
          </Button>
        )}
      </Group>
    </fieldset>
  );
}
