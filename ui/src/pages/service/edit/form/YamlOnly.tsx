import { Text } from "@mantine/core";
import type { Path } from "../../../../lib/document";

/** A value that the form cannot show. */
export function YamlOnly({ path }: { path: Path }) {
  return (
    <Text size="sm" c="dimmed">
      <span className="mono">{path.at(-1)}</span> is edited in the YAML.
    </Text>
  );
}
