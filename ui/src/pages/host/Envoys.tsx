import { Paper, Stack, Table, Text, Title, Tooltip } from "@mantine/core";
import type { Schemas } from "../../api/types";
import { Status } from "../../parts/Status";
import { typeName } from "./state";

/** What each Envoy was sent and has accepted, type by type. */
export function Envoys({ host }: { host: Schemas["HostDetail"] }) {
  const types = host.types ?? [];
  if (types.length === 0) {
    return (
      <Text c="dimmed">
        {host.connected
          ? "No Envoy is connected to its Beacon."
          : "Its Beacon is not connected, so nothing is known of its Envoys. They go on with what they have."}
      </Text>
    );
  }
  const clients = [...new Set(types.map(({ client }) => client))];
  return (
    <Stack>
      {clients.map((client) => (
        <Paper key={client} component="section" aria-label={`Envoy ${client}`}>
          <Title order={2} mb="xs" className="break">
            {client}
          </Title>
          <Types types={types.filter((type) => type.client === client)} />
        </Paper>
      ))}
    </Stack>
  );
}

function Types({ types }: { types: Schemas["ClientType"][] }) {
  return (
    <Table>
      <Table.Thead>
        <Table.Tr>
          <Table.Th scope="col">Type</Table.Th>
          <Table.Th scope="col">State</Table.Th>
          <Table.Th scope="col">Sent</Table.Th>
          <Table.Th scope="col">Accepted</Table.Th>
          <Table.Th scope="col">What it said</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {types.map((type) => (
          <Table.Tr key={type.type_url}>
            <Table.Td>
              <Tooltip label={type.type_url}>
                <span>{typeName(type.type_url)}</span>
              </Tooltip>
            </Table.Td>
            <Table.Td>
              <Status state={type.state} />
            </Table.Td>
            <Table.Td className="mono">{short(type.sent)}</Table.Td>
            <Table.Td className="mono">
              {type.accepted === type.sent ? "the same" : short(type.accepted)}
            </Table.Td>
            <Table.Td className="break">
              {type.error}
              {type.quarantined && type.quarantined.length > 0 && (
                <div>
                  Kept from it, because it cannot take them:{" "}
                  <span className="mono">{type.quarantined.join(", ")}</span>
                </div>
              )}
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

const short = (version?: string) => (version ? version.slice(0, 12) : "–");
