import { Group, Paper, Stack, Text, Title } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { activity } from "../../api/queries";
import { link } from "../../lib/links";
import { Loaded } from "../../parts/Loaded";
import { Status } from "../../parts/Status";
import { To } from "../../parts/To";
import { When } from "../../parts/When";

const SHOWN = 6;

/** How the last changes ended: the first thing to look at if something is wrong. */
export function LastChanges() {
  const query = useInfiniteQuery(activity({ command: "end" }));
  return (
    <Paper component="section" aria-label="How the last changes ended">
      <Title order={2} mb="xs">
        How the last changes ended
      </Title>
      <Loaded query={query}>
        {({ pages }) => {
          const ended = pages[0]?.entries.slice(0, SHOWN) ?? [];
          if (ended.length === 0) return <Text c="dimmed">Nothing has been activated yet.</Text>;
          return (
            <Stack gap={6}>
              {ended.flatMap((entry) =>
                entry.events
                  .filter(({ kind }) => kind === "activation_ended")
                  .map(({ service, data }) => {
                    const { activation, outcome, rejection, detail } = data as Ended;
                    return (
                      <Group key={activation} gap="sm" wrap="nowrap" align="flex-start">
                        <div className="state-column">
                          <Status state={outcome} />
                        </div>
                        <Text size="sm" className="break" style={{ minWidth: 0 }}>
                          <To to={link.activation(activation)}>{activation}</To> of{" "}
                          {service && <To to={link.service(service)}>{service}</To>}{" "}
                          <span className="dim">
                            <When ms={entry.time_unix_ms} />
                          </span>
                          {rejection ? (
                            <>
                              : <To to={link.host(rejection.host)}>{rejection.host}</To> refused{" "}
                              <span className="mono">{rejection.resource}</span>: {rejection.error}
                            </>
                          ) : (
                            detail && `: ${detail}`
                          )}
                        </Text>
                      </Group>
                    );
                  }),
              )}
            </Stack>
          );
        }}
      </Loaded>
    </Paper>
  );
}

interface Ended {
  activation: string;
  outcome: string;
  detail?: string;
  rejection?: { host: string; resource: string; error: string } | null;
}
