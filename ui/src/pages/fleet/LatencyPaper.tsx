import { Paper, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import { latency } from "../../api/queries";
import type { Schemas } from "../../api/types";
import { millis } from "../../lib/millis";
import { useUtc } from "../../lib/preferences";
import { Loaded, Waiting } from "../../parts/Loaded";
import { When } from "../../parts/When";

const LatencyChart = lazy(() => import("../../charts/LatencyChart"));

/** How long it takes from Tower until hosts have applied what it sends, measured all the time by probes. */
export function LatencyPaper() {
  const query = useQuery(latency);
  const [utc] = useUtc();
  return (
    <Paper component="section" aria-label="From Tower until applied">
      <Title order={2} mb="xs">
        From Tower until applied
      </Title>
      <Loaded query={query}>
        {({ probes }) => {
          const last = probes.findLast(({ beacons }) => beacons > 0);
          if (!last) return <Text c="dimmed">No Beacon has answered a probe in the last hour.</Text>;
          return (
            <>
              <Text size="sm" mb="xs">
                The last probe, <When ms={last.sent_unix_ms} />: {words(last)}.
              </Text>
              <Suspense fallback={<Waiting />}>
                <LatencyChart
                  probes={probes}
                  utc={utc}
                  label={`Chart of the last hour. Last: ${words(last)}`}
                />
              </Suspense>
            </>
          );
        }}
      </Loaded>
    </Paper>
  );
}

function words({ beacons, p50_ms, p99_ms, max_ms }: Schemas["ProbeOutcome"]): string {
  if (beacons === 1) return `1 host after ${millis(max_ms)}`;
  return `${beacons} hosts, half of them after ${millis(p50_ms)}, 99 % after ${millis(p99_ms)}, the last after ${millis(max_ms)}`;
}
