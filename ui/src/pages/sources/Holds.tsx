import { Group, Paper, Stack, Text } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, ok } from "../../api/client";
import type { Schemas } from "../../api/types";
import { link } from "../../lib/links";
import { Act } from "../../parts/Act";
import { ReasonDialog } from "../../parts/ReasonDialog";
import { To } from "../../parts/To";
import { When } from "../../parts/When";

type Hold = Schemas["Hold"];

/** Endpoints that stay published though they are registered no more, and letting them go. */
export function Holds({ holds }: { holds: Hold[] }) {
  const [releasing, setReleasing] = useState<Hold>();
  const client = useQueryClient();
  return (
    <>
      {holds.map((hold) => (
        <Paper key={hold.id} p="sm" component="section" aria-label={`Hold ${hold.id}`}>
          <Group justify="space-between" align="flex-start" wrap="nowrap">
            <Stack gap={4}>
              <Text fw={600}>
                {hold.endpoint_count} endpoints of{" "}
                {hold.service ? (
                  <To to={link.service(hold.service, "endpoints")}>{hold.service}</To>
                ) : (
                  "many services"
                )}{" "}
                are held
              </Text>
              <Text size="sm">
                There were {hold.largest} and, all at once, <When ms={hold.since_unix_ms} />, only {hold.left}
                . Those that are held stay published until they register again; the last of them goes{" "}
                <When ms={hold.ends_unix_ms} />.
              </Text>
              <details>
                <summary>Which endpoints</summary>
                <Text size="sm" className="mono break">
                  {hold.endpoints.join(", ")}
                  {hold.endpoint_count > hold.endpoints.length && " …"}
                </Text>
              </details>
            </Stack>
            <Act need="platform" color="orange" onClick={() => setReleasing(hold)}>
              Release …
            </Act>
          </Group>
        </Paper>
      ))}
      <ReasonDialog
        opened={releasing !== undefined}
        onClose={() => setReleasing(undefined)}
        title={`Release ${releasing?.endpoint_count ?? 0} endpoints of ${releasing?.service ?? releasing?.source ?? ""}`}
        confirm="Release"
        color="orange"
        reasonNeeded
        act={(reason) =>
          ok(
            api.POST("/api/v1/holds/{id}/release", {
              params: { path: { id: releasing?.id ?? "" } },
              body: { reason },
            }),
          )
        }
        onDone={() => void client.invalidateQueries({ queryKey: ["sources"] })}
      >
        Callers stop sending requests to them within a second. If they are alive after all, they have to
        register again to be called.
      </ReasonDialog>
    </>
  );
}
