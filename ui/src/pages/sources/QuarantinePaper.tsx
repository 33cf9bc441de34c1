import { Alert, Stack, Text } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, ok } from "../../api/client";
import type { Schemas } from "../../api/types";
import { Act } from "../../parts/Act";
import { Facts } from "../../parts/Facts";
import { ReasonDialog } from "../../parts/ReasonDialog";

/** What was found in a source and is not believed, and believing it. */
export function QuarantinePaper({ quarantine }: { quarantine: Schemas["Quarantine"] }) {
  const [open, setOpen] = useState(false);
  const client = useQueryClient();
  const { source, incarnation } = quarantine;
  return (
    <Alert color="orange" title="What this source holds now is not believed">
      <Stack gap="sm" align="flex-start">
        <Text size="sm" className="break">
          {quarantine.reason}
        </Text>
        <Facts
          facts={[
            ["Published, and stays", `${quarantine.published.index} of ${quarantine.published.incarnation}`],
            ["Found", `${quarantine.index} of ${incarnation}`],
            [
              "Adopting it would leave",
              `${quarantine.services} services, ${quarantine.entries} registrations`,
            ],
          ]}
        />
        <Act need="platform" color="orange" onClick={() => setOpen(true)}>
          Adopt what was found …
        </Act>
      </Stack>
      <ReasonDialog
        opened={open}
        onClose={() => setOpen(false)}
        title={`Adopt incarnation ${incarnation} of ${source}`}
        confirm="Adopt"
        color="orange"
        reasonNeeded
        act={(reason) =>
          ok(
            api.POST("/api/v1/sources/{id}/adopt", {
              params: { path: { id: source } },
              body: { incarnation, reason },
            }),
          )
        }
        onDone={() => void client.invalidateQueries({ queryKey: ["sources"] })}
      >
        {quarantine.services} services with {quarantine.entries} registrations take the place of what is
        published. What is not among them is gone for callers within a second.
      </ReasonDialog>
    </Alert>
  );
}
