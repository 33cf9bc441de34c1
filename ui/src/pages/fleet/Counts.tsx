import { Group, Text, UnstyledButton } from "@mantine/core";
import type { Schemas } from "../../api/types";
import { Status } from "../../parts/Status";
import { type HostState, STATES } from "./states";

interface Props {
  hosts: Schemas["HostCounts"];
  state: string;
  onState: (state: HostState | "") => void;
}

/** How many hosts are how; pressing one shows those. */
export function Counts({ hosts, state, onState }: Props) {
  return (
    <Group gap="sm" role="group" aria-label="Hosts by state">
      {STATES.map((each) => (
        <UnstyledButton
          key={each.state}
          className="count"
          aria-pressed={state === each.state}
          onClick={() => onState(state === each.state ? "" : each.state)}
        >
          <Text fz={22} fw={650} lh={1.2} className="tnum" c={hosts[each.state] === 0 ? "dimmed" : undefined}>
            {hosts[each.state].toLocaleString("en")}
          </Text>
          <Status state={each.state} />
        </UnstyledButton>
      ))}
    </Group>
  );
}
