import { Group, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { endpoints } from "../../api/queries";
import type { Schemas } from "../../api/types";
import { Loaded } from "../../parts/Loaded";
import { type Column, Rows } from "../../parts/Rows";
import { SearchBox } from "../../parts/SearchBox";
import { Status } from "../../parts/Status";
import { useSearch } from "../../parts/useSearch";
import { useService } from "./context";

type Endpoint = Schemas["Endpoint"];

const columns: Column<Endpoint>[] = [
  {
    id: "address",
    head: "Address",
    width: 240,
    cell: ({ address, port }) => (
      <span className="mono">{`${address.includes(":") ? `[${address}]` : address}:${port}`}</span>
    ),
  },
  { id: "state", head: "State", width: 130, cell: ({ state }) => <Status state={state} /> },
  { id: "zone", head: "Zone", width: 140, cell: ({ zone }) => zone },
  { id: "weight", head: "Weight", width: 80, align: "right", cell: ({ weight }) => weight },
  { id: "port_name", head: "Port", width: 100, cell: ({ port_name }) => port_name },
  { id: "labels", head: "Labels", cell: ({ labels }) => <span className="mono">{words(labels)}</span> },
  { id: "source", head: "Source", width: 180, cell: ({ source }) => source },
];

/** Where the service is: each endpoint with its state, and the source that it comes from. */
export function Component() {
  const { name } = useService();
  const [search, setSearch] = useSearch("search");
  const query = useQuery(endpoints(name));
  const found = useMemo(
    () => query.data?.endpoints.filter((endpoint) => fits(endpoint, search)) ?? [],
    [query.data, search],
  );
  return (
    <Loaded query={query}>
      {({ endpoints }) => (
        <>
          <Group justify="space-between">
            <SearchBox label="Search all columns" value={search} onChange={setSearch} />
            <Text size="sm" c="dimmed" role="status">
              {search ? `${found.length} of ${endpoints.length}` : endpoints.length} endpoints
            </Text>
          </Group>
          <Rows
            label="Endpoints"
            columns={columns}
            rows={found}
            rowKey={({ source, address, port }) => `${source} ${address} ${port}`}
            empty={search ? "No endpoint fits this." : "No source knows an endpoint of this service."}
          />
        </>
      )}
    </Loaded>
  );
}

const words = (labels: Record<string, string>) =>
  Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(" ");

function fits(endpoint: Endpoint, search: string): boolean {
  if (search === "") return true;
  const { address, port, zone, state, source, labels } = endpoint;
  return [`${address}:${port}`, zone, state, source, words(labels)]
    .join(" ")
    .toLowerCase()
    .includes(search.toLowerCase());
}
