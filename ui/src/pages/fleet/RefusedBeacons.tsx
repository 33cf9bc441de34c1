import { Paper, Table, Text } from "@mantine/core";
import type { Schemas } from "../../api/types";
import { When } from "../../parts/When";

/** Beacons that wanted to connect and could not; they are not in the list of hosts, or silent there. */
export function RefusedBeacons({ refused }: { refused: Schemas["Refusal"][] }) {
  if (refused.length === 0) return null;
  return (
    <Paper component="section" aria-label="Beacons that could not connect">
      <details>
        <summary>
          <Text span fw={600}>
            {refused.length} Beacons could not connect
          </Text>
        </summary>
        <Table mt="xs">
          <Table.Thead>
            <Table.Tr>
              <Table.Th scope="col">Node</Table.Th>
              <Table.Th scope="col">From</Table.Th>
              <Table.Th scope="col">Why</Table.Th>
              <Table.Th scope="col">Times</Table.Th>
              <Table.Th scope="col">Last</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {refused.map((refusal) => (
              <Table.Tr key={`${refusal.peer} ${refusal.node_id} ${refusal.reason}`}>
                <Table.Td className="break">{refusal.node_id || "not said"}</Table.Td>
                <Table.Td className="mono">{refusal.peer}</Table.Td>
                <Table.Td className="break">{refusal.reason}</Table.Td>
                <Table.Td>{refusal.count}</Table.Td>
                <Table.Td>
                  <When ms={refusal.last_unix_ms} />
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </details>
    </Paper>
  );
}
