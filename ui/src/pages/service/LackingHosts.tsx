import { Paper, Table, Text, Title } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { isFinal, lacking } from "../../api/queries";
import type { Activation, Schemas } from "../../api/types";
import { link } from "../../lib/links";
import { type Column, Rows } from "../../parts/Rows";
import { Status } from "../../parts/Status";
import { To } from "../../parts/To";
import { usePages } from "../../parts/usePages";
import { When } from "../../parts/When";

type Lack = Schemas["Lack"];

const columns: Column<Lack>[] = [
  { id: "host", head: "Host", width: "26%", cell: ({ host }) => <To to={link.host(host)}>{host}</To> },
  { id: "why", head: "State", width: 150, cell: ({ why }) => <Status state={why} /> },
  { id: "since", head: "Since", width: 90, cell: ({ since_unix_ms }) => <When ms={since_unix_ms} /> },
  {
    id: "detail",
    head: "Detail",
    cell: ({ detail, rejection }) => (
      <span title={rejection?.error ?? detail ?? undefined}>{rejection?.error ?? detail}</span>
    ),
  },
];

/** The hosts that should have a release and have not, each with why. */
export function LackingHosts({ activation }: { activation: Activation }) {
  const over = isFinal(activation);
  const succeeded = activation.state === "succeeded";
  const query = useInfiniteQuery({ ...lacking(activation.release), enabled: !over || succeeded });
  const { rows, more } = usePages(query, (page) => page.lacking);
  const shown = over && !succeeded ? activation.lacking : rows;
  if (shown.length === 0 && over && !succeeded) return null;
  return (
    <Paper component="section" aria-label="Hosts that have not accepted it">
      <Title order={2} mb="xs">
        Hosts that should have it and have not accepted it
      </Title>
      {query.isPending && !over ? (
        <Text c="dimmed">Asking Tower …</Text>
      ) : over && !succeeded ? (
        <Ended hosts={shown} />
      ) : (
        <Rows
          label="Hosts that have not accepted it"
          columns={columns}
          rows={shown}
          rowKey={({ host }) => host}
          onEnd={more}
          empty="All of them have accepted it."
          height="420px"
        />
      )}
    </Paper>
  );
}

function Ended({ hosts }: { hosts: Lack[] }) {
  return (
    <Table>
      <Table.Tbody>
        {hosts.map(({ host, why, detail }) => (
          <Table.Tr key={host}>
            <Table.Td>
              <To to={link.host(host)}>{host}</To>
            </Table.Td>
            <Table.Td>
              <Status state={why} />
            </Table.Td>
            <Table.Td className="break">{detail}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}
