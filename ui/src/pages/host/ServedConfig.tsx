import { Alert, Grid, NavLink, Paper, ScrollArea, SegmentedControl, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { stringify } from "yaml";
import { hostConfig, hostIndex } from "../../api/queries";
import type { Schemas } from "../../api/types";
import { Code } from "../../parts/Code";
import { Loaded } from "../../parts/Loaded";
import { SearchBox } from "../../parts/SearchBox";
import { useSearch } from "../../parts/useSearch";
import { leadsTo, pattern } from "./config";

type Resource = Schemas["Resource"];

const TYPES: Schemas["Served"][] = ["listeners", "routes", "clusters", "endpoints", "secrets"];
const SHOWN = 500;

/** Listeners → routes → clusters → endpoints, as the host's Envoys are served them. All of it is in the address. */
export function ServedConfig({ host }: { host: string }) {
  const [what, setWhat] = useSearch("what", "listeners");
  const [search, setSearch] = useSearch("search");
  const [name, setName] = useSearch("resource");
  const query = useQuery(hostIndex(host));
  const wanted = useMemo(() => pattern(search), [search]);
  return (
    <Loaded query={query}>
      {({ resources }) => {
        const ofType = resources.filter((resource) => resource.what === what);
        const found = wanted ? ofType.filter((resource) => wanted.test(resource.name)) : ofType;
        const chosen = ofType.find((resource) => resource.name === name) ?? found[0];
        const go = (type: Schemas["Served"], resource: string) => {
          setSearch("");
          setWhat(type);
          setName(resource);
        };
        return (
          <Stack gap="sm">
            <Stack gap="xs" align="flex-start">
              <SegmentedControl
                size="xs"
                aria-label="Type of resources"
                value={what}
                onChange={setWhat}
                data={TYPES.map((type) => ({
                  value: type,
                  label: `${type} ${resources.filter((resource) => resource.what === type).length}`,
                }))}
              />
              <SearchBox label="Names, as a regular expression" value={search} onChange={setSearch} />
              {wanted === null && <Alert color="orange">This is no regular expression yet.</Alert>}
            </Stack>
            {found.length === 0 ? (
              <Text c="dimmed">None.</Text>
            ) : (
              <Grid>
                <Grid.Col span={{ base: 12, md: 4 }}>
                  <Paper p={4}>
                    <ScrollArea.Autosize mah="60dvh">
                      {found.slice(0, SHOWN).map((resource) => (
                        <NavLink
                          key={resource.name}
                          component="button"
                          active={resource === chosen}
                          aria-current={resource === chosen}
                          label={<span className="mono break">{resource.name}</span>}
                          onClick={() => setName(resource.name)}
                        />
                      ))}
                    </ScrollArea.Autosize>
                    {found.length > SHOWN && (
                      <Text size="sm" c="dimmed" p="xs">
                        The first {SHOWN} of {found.length}; search for the others.
                      </Text>
                    )}
                  </Paper>
                </Grid.Col>
                <Grid.Col span={{ base: 12, md: 8 }}>
                  {chosen && <One host={host} resource={chosen} all={resources} onGo={go} />}
                </Grid.Col>
              </Grid>
            )}
          </Stack>
        );
      }}
    </Loaded>
  );
}

interface OneProps {
  host: string;
  resource: Resource;
  all: Resource[];
  onGo: (what: Schemas["Served"], name: string) => void;
}

function One({ host, resource, all, onGo }: OneProps) {
  const query = useQuery(hostConfig(host, resource.name, resource.what));
  const content = query.data?.resources.find(({ name }) => name === resource.name)?.resource;
  const next = leadsTo(resource.what, content, all);
  return (
    <Paper component="section" aria-label={resource.name}>
      <Title order={2} className="break">
        {resource.name}
      </Title>
      <Text size="xs" c="dimmed">
        version <span className="mono">{resource.version.slice(0, 12)}</span> · {resource.bytes} bytes
      </Text>
      {next.length > 0 && (
        <Text size="sm" my="xs" component="div">
          Leads to{" "}
          {next.map((target) => (
            <span key={`${target.what} ${target.name}`}>
              <button
                type="button"
                className="link-button break"
                onClick={() => onGo(target.what, target.name)}
              >
                {target.what} {target.name}
              </button>{" "}
            </span>
          ))}
        </Text>
      )}
      <Loaded query={query}>
        {() => <Code text={stringify(content)} label={`The content of ${resource.name}`} />}
      </Loaded>
    </Paper>
  );
}
