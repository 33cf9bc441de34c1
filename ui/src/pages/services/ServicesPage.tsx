import { Alert, Badge, CloseButton, Group, NativeSelect, Text, Tooltip } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { services } from "../../api/queries";
import type { Service, ServiceFilter } from "../../api/types";
import { link } from "../../lib/links";
import { Waiting } from "../../parts/Loaded";
import { Page } from "../../parts/Page";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { type Column, Rows } from "../../parts/Rows";
import { SearchBox } from "../../parts/SearchBox";
import { Status } from "../../parts/Status";
import { To } from "../../parts/To";
import { usePages } from "../../parts/usePages";
import { useSearch } from "../../parts/useSearch";
import { When } from "../../parts/When";

const FILTERS: { value: ServiceFilter; label: string }[] = [
  { value: "progressing", label: "With an activation under way" },
  { value: "waiting", label: "Whose last version is not active" },
  { value: "active", label: "With an active version" },
  { value: "no_document", label: "Without a document" },
  { value: "no_endpoints", label: "Without endpoints" },
  { value: "not_served", label: "Not served to hosts" },
];

const SORTS = ["name", "endpoints", "changed"] as const;

const columns: Column<Service>[] = [
  {
    id: "name",
    head: "Service",
    sort: "name",
    order: "ascending",
    cell: ({ name }) => <To to={link.service(name)}>{name}</To>,
  },
  {
    id: "owner",
    head: "Owner",
    width: 150,
    cell: ({ owner }) =>
      owner ? (
        <To to={`/services?owner=${encodeURIComponent(owner)}`} className="quiet">
          {owner}
        </To>
      ) : (
        <Dim>–</Dim>
      ),
  },
  {
    id: "endpoints",
    head: "Endpoints",
    sort: "endpoints",
    width: 110,
    align: "right",
    cell: (row) => row.endpoints,
  },
  { id: "active", head: "Active", width: 250, cell: (row) => <Active service={row} /> },
  { id: "now", head: "Now", width: 220, cell: (row) => <Now service={row} /> },
  {
    id: "changed",
    head: "Changed",
    sort: "changed",
    width: 110,
    align: "right",
    cell: (row) => (row.changed_unix_ms ? <When ms={row.changed_unix_ms} /> : <Dim>never</Dim>),
  },
];

export function Component() {
  const [search, setSearch] = useSearch("search");
  const [word, setSort] = useSearch("sort", "name");
  const sort = SORTS.find((each) => each === word) ?? "name";
  const [wanted, setFilter] = useSearch("filter");
  const filter = FILTERS.find(({ value }) => value === wanted)?.value;
  const [owner, setOwner] = useSearch("owner");
  const query = useInfiniteQuery(
    services({ search: search || undefined, sort, filter, owner: owner || undefined }),
  );
  const { rows, more } = usePages(query, (page) => page.services);
  const first = query.data?.pages[0];
  return (
    <Page title="Services">
      <Group justify="space-between">
        <Group gap="xs">
          <SearchBox label="Search names and owners" value={search} onChange={setSearch} />
          <NativeSelect
            size="xs"
            aria-label="Only services"
            value={filter ?? ""}
            onChange={(event) => setFilter(event.currentTarget.value)}
            data={[{ value: "", label: "All services" }, ...FILTERS]}
          />
          {owner && (
            <Group gap={2} className="chip">
              <Text size="sm">owner {owner}</Text>
              <CloseButton size="xs" aria-label={`Not only owner ${owner}`} onClick={() => setOwner("")} />
            </Group>
          )}
        </Group>
        {first && (
          <Text size="sm" c="dimmed" role="status">
            {first.total.toLocaleString("en")} {first.total === 1 ? "service" : "services"}
          </Text>
        )}
      </Group>
      {first && first.serve !== "all" && (
        <Alert color="gray" py="xs">
          {first.serve === "none"
            ? "Tower watches, and hosts are sent no service (--serve none)."
            : "Hosts are sent only the services that --serve names."}
          {first.unknown.length > 0 && ` No source knows ${first.unknown.join(", ")}.`}
        </Alert>
      )}
      {query.error && <ProblemAlert error={query.error} onRetry={() => void query.refetch()} />}
      {query.isPending ? (
        <Waiting />
      ) : (
        <Rows
          label="Services"
          columns={columns}
          rows={rows}
          total={first?.total}
          rowKey={({ name }) => name}
          sort={sort}
          onSort={setSort}
          onEnd={more}
          empty={search || filter || owner ? "No service is like that." : "No source knows a service yet."}
        />
      )}
    </Page>
  );
}

function Dim({ children }: { children: string }) {
  return (
    <Text span size="sm" c="dimmed">
      {children}
    </Text>
  );
}

function Active({ service }: { service: Service }) {
  if (!service.active) return <Dim>no document</Dim>;
  return (
    <Group gap={6} wrap="nowrap">
      <To to={link.version(service.name, service.active.version)}>
        {service.name}@{service.active.version}
      </To>
      {service.latest_version && service.latest_version !== service.active.version && (
        <Tooltip label="The version that was uploaded last is another one.">
          <Badge color="gray" className="status">
            last @{service.latest_version}
          </Badge>
        </Tooltip>
      )}
    </Group>
  );
}

function Now({ service }: { service: Service }) {
  return (
    <Group gap={6} wrap="nowrap">
      {service.activation && (
        <To to={link.activation(service.activation)}>
          <Status state="progressing" />
        </To>
      )}
      {service.rules > 0 && (
        <Tooltip label="Rules give other versions to some hosts.">
          <Badge color="blue">{service.rules} rules</Badge>
        </Tooltip>
      )}
      {!service.served && <Badge color="gray">not served</Badge>}
      {service.refused && (
        <Tooltip label={service.refused}>
          <Badge color="orange">no host name</Badge>
        </Tooltip>
      )}
    </Group>
  );
}
