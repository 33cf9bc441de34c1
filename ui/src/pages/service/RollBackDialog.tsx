import { Select, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { useNavigate } from "react-router";
import { api, ifMatch, ok } from "../../api/client";
import type { ServiceDetail } from "../../api/types";
import { link } from "../../lib/links";
import { ReasonDialog } from "../../parts/ReasonDialog";

interface Props {
  service: ServiceDetail;
  opened: boolean;
  onClose: () => void;
}

/** Back to what stood before, on all hosts at once. */
export function RollBackDialog({ service, opened, onClose }: Props) {
  const { name, active, versions, index } = service;
  const navigate = useNavigate();
  const [to, setTo] = useState<string | null>(null);
  const others = versions.filter(({ number, retired }) => number !== active?.version && !retired);
  return (
    <ReasonDialog
      opened={opened}
      onClose={onClose}
      title={`Roll back ${name}`}
      confirm="Roll back"
      color="orange"
      act={(reason) =>
        ok(
          api.POST("/api/v1/services/{service}/rollback", {
            params: { path: { service: name }, header: { "If-Match": ifMatch(index) } },
            body: { reason, to: to ? Number(to) : undefined },
          }),
        )
      }
      onDone={(started) => started.activation && void navigate(link.activation(started.activation.id))}
    >
      <Stack gap="sm">
        <Text size="sm">
          It goes to all hosts at once. {name}@{active?.version} is active now
          {service.activation_in_progress && "; the activation that is under way ends with it"}.
        </Text>
        <Select
          label="To"
          placeholder="what was active before"
          clearable
          value={to}
          onChange={setTo}
          data={others.map(({ number, author, reason }) => ({
            value: String(number),
            label: `${name}@${number} by ${author}${reason ? `: ${reason}` : ""}`,
          }))}
        />
      </Stack>
    </ReasonDialog>
  );
}
