import { Alert, Group, Text } from "@mantine/core";
import type { Activation } from "../../api/types";
import { link } from "../../lib/links";
import { Status } from "../../parts/Status";
import { To } from "../../parts/To";

/** An activation that is under way, in a line. */
export function ActivationLine({ activation }: { activation: Activation }) {
  const { id, service, version, hosts, step, steps } = activation;
  return (
    <Alert py="xs" color="blue">
      <Group gap="sm">
        <Status state={activation.state} />
        <Text size="sm">
          {service}@{version} goes to {activation.audience}: step {step + 1} of {steps.length},{" "}
          {hosts.accepted} of {hosts.total} hosts have accepted it
          {hosts.rejected > 0 && `, ${hosts.rejected} refused it`}. By {activation.author}.
        </Text>
        <To to={link.activation(id)} size="sm">
          Watch it land
        </To>
      </Group>
    </Alert>
  );
}
