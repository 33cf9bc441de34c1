import { Table, Text } from "@mantine/core";
import type { Schemas } from "../../api/types";
import { To } from "../../parts/To";
import { groupQuery, STATES } from "./states";

interface Props {
  by: string;
  groups: Schemas["HostGroups"];
}

/** Hosts put together by what they have in common; each number leads to the hosts that it counts. */
export function Groups({ by, groups }: Props) {
  if (groups.groups.length === 0) {
    return <Text c="dimmed">No host says anything about it.</Text>;
  }
  return (
    <>
      <div className="rows groups">
        <Table style={{ tableLayout: "auto" }}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th scope="col">
                {by.replace("label:", "Label ").replace(/^[zw]/, (c) => c.toUpperCase())}
              </Table.Th>
              <Table.Th scope="col" w="35%">
                <span className="visually-hidden">Shares</span>
              </Table.Th>
              <Table.Th scope="col" ta="right">
                Hosts
              </Table.Th>
              {STATES.map(({ state, label }) => (
                <Table.Th key={state} scope="col" ta="right">
                  {label}
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {groups.groups.map(({ name, hosts }) => (
              <Table.Tr key={name}>
                <Table.Th scope="row" fw={500} className="break">
                  <To to={groupQuery(by, name)}>{name || "not said"}</To>
                </Table.Th>
                <Table.Td>
                  <Shares hosts={hosts} />
                </Table.Td>
                <Table.Td ta="right" className="tnum">
                  {hosts.total}
                </Table.Td>
                {STATES.map(({ state, label }) => (
                  <Table.Td key={state} ta="right" className="tnum">
                    {hosts[state] > 0 ? (
                      <To to={groupQuery(by, name, state)} aria-label={`${hosts[state]} ${label}`}>
                        {String(hosts[state])}
                      </To>
                    ) : (
                      <span className="dim">0</span>
                    )}
                  </Table.Td>
                ))}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </div>
      {groups.left_out > 0 && (
        <Text size="sm" c="dimmed">
          {groups.left_out} smaller groups in which nothing is rejected are left out.
        </Text>
      )}
    </>
  );
}

/** The numbers beside it as a bar, for the eye alone. */
function Shares({ hosts }: { hosts: Schemas["HostCounts"] }) {
  return (
    <div className="shares" aria-hidden>
      {STATES.map(({ state, color }) => (
        <span
          key={state}
          style={{ flexGrow: hosts[state], background: `var(--mantine-color-${color}-filled)` }}
        />
      ))}
    </div>
  );
}
