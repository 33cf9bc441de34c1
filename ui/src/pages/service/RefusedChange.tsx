import { Paper, Text, Title } from "@mantine/core";
import type { Activation } from "../../api/types";
import { Changes } from "../../parts/Changes";

/** Which fields a change that was refused would have changed, and who wrote them: whom to talk to. */
export function RefusedChange({ activation: { changes } }: { activation: Activation }) {
  return (
    <Paper component="section" aria-label="What it would have changed">
      <Title order={2} mb="xs">
        What it would have changed, and who wrote that
      </Title>
      {changes && changes.length > 0 ? (
        <Changes changes={changes} authored />
      ) : (
        <Text size="sm">No field is different from what the host had.</Text>
      )}
    </Paper>
  );
}
