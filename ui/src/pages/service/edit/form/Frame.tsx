import { ActionIcon, Group, Text, Tooltip } from "@mantine/core";
import { X } from "lucide-react";
import type { ReactNode } from "react";
import { type Path, pathName } from "../../../../lib/document";
import { Words } from "../../../../parts/Words";
import { useForm } from "./context";
import { findingsAt } from "./values";

interface Props {
  path: Path;
  title: ReactNode;
  help?: string;
  required: boolean;
  actions?: ReactNode;
  children: ReactNode;
}

/** What is around a field that has fields of its own. */
export function Frame({ path, title, help, required, actions, children }: Props) {
  const { showHelp, findings } = useForm();
  const wrong = findingsAt(findings, path);
  return (
    <fieldset className={path.length <= 3 ? "field-frame section" : "field-frame"}>
      <legend className="visually-hidden">{pathName(path)}</legend>
      <Group justify="space-between" wrap="nowrap" gap="xs">
        <Text fw={600} size="sm" className="break" component="div">
          {title}
        </Text>
        <Group gap={4} wrap="nowrap">
          {actions}
          {!required && <Remove path={path} />}
        </Group>
      </Group>
      {showHelp && help && (
        <Text size="xs" c="dimmed" mb={6}>
          <Words text={help} />
        </Text>
      )}
      {wrong && (
        <Text size="xs" c="var(--mantine-color-error)" role="alert" mb={6}>
          {wrong}
        </Text>
      )}
      {children}
    </fieldset>
  );
}

export function Remove({ path }: { path: Path }) {
  const { remove, locked } = useForm();
  if (locked) return null;
  const label = `Remove ${pathName(path).replace(/^spec\./, "")}`;
  return (
    <Tooltip label={label}>
      <ActionIcon size="sm" variant="subtle" color="gray" aria-label={label} onClick={() => remove(path)}>
        <X size={14} aria-hidden />
      </ActionIcon>
    </Tooltip>
  );
}
