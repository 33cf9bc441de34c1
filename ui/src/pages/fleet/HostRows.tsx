import { CloseButton, Group, Text } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { hosts } from "../../api/queries";
import type { Host } from "../../api/types";
import { link } from "../../lib/links";
import { Waiting } from "../../parts/Loaded";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { type Column, Rows } from "../../parts/Rows";
import { SearchBox } from "../../parts/SearchBox";
import { Status } from "../../parts/Status";
import { To } from "../../parts/To";
import { usePages } from "../../parts/usePages";
import { useSearch } from "../../parts/useSearch";
import { When } from "../../parts/When";
import { STATES } from "./states";

const columns: Column<Host>[] = [
  { id: "name", head: "Host", width: "22%", cell: ({ name }) => <To to={link.host(name)}>{name}</To> },
  { id: "state", head: "State", width: 120, cell: ({ state }) => <Status state={state} /> },
  {
    id: "trouble",
    head: "What is refused",
    cell: ({ trouble }) => trouble && <span title={trouble}>{trouble}</span>,
  },
  { id: "zone", head: "Zone", width: 120, cell: ({ zone }) => zone },
  {
    id: "workloads",
    head: "Workloads",
    width: 190,
    cell: ({ workloads }) => <span title={workloads?.join(", ")}>{workloads?.join(", ")}</span>,
  },
  {
    id: "accepted",
    head: "Accepted",
    width: 90,
    align: "right",
    cell: ({ accepted, lacking }) => (
      <span title="services with a document that its Envoys have accepted">
        {accepted} of {accepted + lacking}
      </span>
    ),
  },
  { id: "clients", head: "Envoys", width: 70, align: "right", cell: ({ clients }) => clients },
  {
    id: "seen",
    head: "Heard of",
    width: 90,
    align: "right",
    cell: ({ seen_unix_ms }) => (seen_unix_ms ? <When ms={seen_unix_ms} /> : "never"),
  },
];

/** Hosts, by what the address says about them. */
export function HostRows() {
  const [search, setSearch] = useSearch("search");
  const [state, setState] = useSearch("state");
  const [zone, setZone] = useSearch("zone");
  const [workload, setWorkload] = useSearch("workload");
  const [label, setLabel] = useSearch("label");
  const known = STATES.find((each) => each.state === state);
  const query = useInfiniteQuery(
    hosts({
      search: search || undefined,
      state: known?.state,
      zone: zone || undefined,
      workload: workload || undefined,
      label: label || undefined,
    }),
  );
  const { rows, more } = usePages(query, (page) => page.hosts);
  const total = query.data?.pages[0]?.total;
  const narrowed = [
    known && { word: known.label, drop: setState },
    zone && { word: `zone ${zone}`, drop: setZone },
    workload && { word: `workload ${workload}`, drop: setWorkload },
    label && { word: label, drop: setLabel },
  ].filter((each) => typeof each === "object");
  return (
    <>
      <Group justify="space-between">
        <Group gap="xs">
          {narrowed.map(({ word, drop }) => (
            <Group key={word} gap={2} className="chip">
              <Text size="sm">{word}</Text>
              <CloseButton size="xs" aria-label={`Not only ${word}`} onClick={() => drop("")} />
            </Group>
          ))}
          {total !== undefined && (
            <Text size="sm" c="dimmed" role="status">
              {total.toLocaleString("en")} {total === 1 ? "host" : "hosts"}
            </Text>
          )}
        </Group>
        <SearchBox label="Search names and zones" value={search} onChange={setSearch} />
      </Group>
      {query.error && <ProblemAlert error={query.error} onRetry={() => void query.refetch()} />}
      {query.isPending ? (
        <Waiting />
      ) : (
        <Rows
          label="Hosts"
          columns={columns}
          rows={rows}
          total={total}
          rowKey={({ name }) => name}
          onEnd={more}
          empty={
            search || narrowed.length > 0
              ? "No host is like that."
              : "No Beacon has connected to this Tower yet."
          }
        />
      )}
    </>
  );
}
