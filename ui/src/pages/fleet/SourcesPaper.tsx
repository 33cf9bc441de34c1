import { Group, Paper, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { sources } from "../../api/queries";
import { Loaded } from "../../parts/Loaded";
import { Status } from "../../parts/Status";
import { To } from "../../parts/To";
import { When } from "../../parts/When";

/** Where endpoints come from, and whether that works. */
export function SourcesPaper() {
  const query = useQuery(sources);
  return (
    <Paper component="section" aria-label="Sources">
      <Group justify="space-between" mb="xs">
        <Title order={2}>Sources</Title>
        <To to="/sources" size="sm">
          Details
        </To>
      </Group>
      <Loaded query={query}>
        {({ sources }) => (
          <Stack gap={6}>
            {sources.map((source) => (
              <Group key={source.id} gap="sm">
                <Status state={source.state} of="source" />
                <Text size="sm" fw={500} className="break">
                  {source.id}
                </Text>
                <Text size="sm" c="dimmed">
                  {source.services} services, {source.endpoints} endpoints
                  {source.state !== "live" && (
                    <>
                      , since <When ms={source.since_unix_ms} />
                    </>
                  )}
                  {source.holds.length > 0 && `, ${source.holds.length} held`}
                  {source.quarantine && ", quarantined"}
                  {source.problem_count > 0 && `, ${source.problem_count} unreadable`}
                </Text>
              </Group>
            ))}
            {sources.length === 0 && <Text size="sm">Tower has no sources.</Text>}
          </Stack>
        )}
      </Loaded>
    </Paper>
  );
}
