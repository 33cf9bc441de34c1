import { Alert, Paper, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { log } from "../../api/queries";
import { Facts } from "../../parts/Facts";
import { Loaded } from "../../parts/Loaded";

/** The Towers that share the event log. */
export function TowersPaper() {
  const query = useQuery(log);
  return (
    <Paper component="section" aria-label="Towers">
      <Title order={2} mb="xs">
        Towers
      </Title>
      <Loaded query={query}>
        {(log) => (
          <Stack gap="sm">
            {log.trouble && (
              <Alert color="red" title="The event log is in trouble" role="alert">
                <Text size="sm" className="break">
                  {log.trouble}
                </Text>
              </Alert>
            )}
            <Facts
              facts={[
                ["Running", log.towers.length],
                ["Event log", log.kind],
                ["Entries", log.index],
                [
                  "Ids of their runs",
                  <span key="" className="mono break">
                    {log.towers.map((id) => id.slice(0, 8)).join(" ")}
                  </span>,
                ],
              ]}
            />
          </Stack>
        )}
      </Loaded>
    </Paper>
  );
}
