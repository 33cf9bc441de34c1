import { Badge, Paper, Table, Text, Title } from "@mantine/core";
import type { ServiceDetail } from "../../api/types";
import { link } from "../../lib/links";
import { To } from "../../parts/To";
import { flatten } from "./effective";

const COLOR: Record<string, string> = { service: "indigo", platform: "grape", security: "orange" };

/** The active document with the parts of platform and security: each field, and whose it is. */
export function EffectivePaper({ service }: { service: ServiceDetail }) {
  if (!service.effective) return null;
  const fields = flatten(service.effective);
  return (
    <Paper component="section" aria-label="What takes effect">
      <Title order={2} mb="xs">
        What takes effect
      </Title>
      {fields.length === 0 && <Text c="dimmed">Nothing but defaults.</Text>}
      <Table>
        <Table.Thead>
          <Table.Tr>
            <Table.Th scope="col">Field</Table.Th>
            <Table.Th scope="col">Value</Table.Th>
            <Table.Th scope="col">Whose</Table.Th>
            <Table.Th scope="col">From</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {fields.map(({ field, value, origin }) => (
            <Table.Tr key={field}>
              <Table.Td className="mono break">{field}</Table.Td>
              <Table.Td className="mono break pre">{value}</Table.Td>
              <Table.Td>{origin && <Badge color={COLOR[origin.owner]}>{origin.owner}</Badge>}</Table.Td>
              <Table.Td>{origin && <Part service={service.name} part={origin.part} />}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Paper>
  );
}

function Part({ service, part }: { service: string; part: string }) {
  const number = part.startsWith(`${service}@`) ? Number(part.slice(service.length + 1)) : Number.NaN;
  return Number.isInteger(number) ? <To to={link.version(service, number)}>{part}</To> : part;
}
