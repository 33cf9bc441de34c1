import { Grid, Group, SimpleGrid, Text, Title } from "@mantine/core";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { beacons, hosts } from "../../api/queries";
import type { Host } from "../../api/types";
import { link } from "../../lib/links";
import { Loaded, Waiting } from "../../parts/Loaded";
import { Page } from "../../parts/Page";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { type Column, Rows } from "../../parts/Rows";
import { SearchBox } from "../../parts/SearchBox";
import { Status } from "../../parts/Status";
import { To } from "../../parts/To";
import { usePages } from "../../parts/usePages";
import { useSearch } from "../../parts/useSearch";
import { When } from "../../parts/When";
import { LastChanges } from "./LastChanges";
import { RefusedBeacons } from "./RefusedBeacons";
import { SourcesPaper } from "./SourcesPaper";
import { TowersPaper } from "./TowersPaper";

const columns: Column<Host>[] = [
  { id: "name", head: "Host", cell: ({ name }) => <To to={link.host(name)}>{name}</To> },
  { id: "state", head: "State", width: 140, cell: (host) => <Status state={stateOf(host)} /> },
  { id: "zone", head: "Zone", width: 140, cell: ({ zone }) => zone },
  { id: "workloads", head: "Workloads", cell: ({ workloads }) => workloads?.join(", ") },
  {
    id: "accepted",
    head: "Accepted",
    width: 100,
    align: "right",
    cell: ({ accepted, lacking }) => `${accepted} of ${accepted + lacking}`,
  },
  { id: "clients", head: "Envoys", width: 80, align: "right", cell: ({ clients }) => clients },
  {
    id: "seen",
    head: "Heard of",
    width: 100,
    align: "right",
    cell: ({ seen_unix_ms }) => (seen_unix_ms ? <When ms={seen_unix_ms} /> : "never"),
  },
];

export function Component() {
  const [search, setSearch] = useSearch("search");
  const query = useInfiniteQuery(hosts({ search: search || undefined }));
  const { rows, more, complete } = usePages(query, (page) => page.hosts);
  const connected = useQuery(beacons);
  return (
    <Page title="Fleet">
      <LastChanges />
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <SourcesPaper />
        <TowersPaper />
      </SimpleGrid>
      <Loaded query={connected}>{({ refused }) => <RefusedBeacons refused={refused} />}</Loaded>
      <Group justify="space-between">
        <Group gap="sm">
          <Title order={2}>Hosts</Title>
          <Text size="sm" c="dimmed" role="status">
            {complete ? `${rows.length} hosts` : `the first ${rows.length}; more come as you scroll`}
          </Text>
        </Group>
        <SearchBox label="Search names and zones" value={search} onChange={setSearch} />
      </Group>
      {query.error && <ProblemAlert error={query.error} onRetry={() => void query.refetch()} />}
      <Grid>
        <Grid.Col span={12}>
          {query.isPending ? (
            <Waiting />
          ) : (
            <Rows
              label="Hosts"
              columns={columns}
              rows={rows}
              rowKey={({ name }) => name}
              onEnd={more}
              empty={search ? `No host has “${search}” in its name or zone.` : "No Beacon has connected yet."}
            />
          )}
        </Grid.Col>
      </Grid>
    </Page>
  );
}

function stateOf(host: Host): string {
  if (!host.connected) return "silent";
  return host.lacking > 0 ? "lagging" : "on_target";
}
