import { Alert, Group, Paper, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { sources } from "../../api/queries";
import type { Source } from "../../api/types";
import { Facts } from "../../parts/Facts";
import { Loaded } from "../../parts/Loaded";
import { Page } from "../../parts/Page";
import { Status } from "../../parts/Status";
import { When } from "../../parts/When";
import { Holds } from "./Holds";
import { QuarantinePaper } from "./QuarantinePaper";

export function Component() {
  const query = useQuery(sources);
  return (
    <Page title="Sources and guard">
      <Text c="dimmed">
        Sources tell Tower which endpoints there are. The guard keeps endpoints that vanish all at once, and
        what it does not believe, until it is sure or somebody who knows decides.
      </Text>
      <Loaded query={query}>
        {({ sources }) => (
          <>
            <Decisions sources={sources} />
            {sources.map((source) => (
              <SourcePaper key={source.id} source={source} />
            ))}
            {sources.length === 0 && <Text>Tower has no sources: see its flag --discovery.</Text>}
          </>
        )}
      </Loaded>
    </Page>
  );
}

function Decisions({ sources }: { sources: Source[] }) {
  const quarantined = sources.filter(({ quarantine }) => quarantine).length;
  const held = sources.reduce((sum, { holds }) => sum + holds.length, 0);
  if (quarantined + held === 0) return null;
  const words = [
    held > 0 && `${held} ${held === 1 ? "hold" : "holds"}`,
    quarantined > 0 && `${quarantined} ${quarantined === 1 ? "quarantine" : "quarantines"}`,
  ].filter(Boolean);
  return (
    <Alert color="orange" title={`The guard is at work: ${words.join(" and ")}`} py="xs">
      Traffic goes on as before. Look at what is held below, and release it if it is really meant to be gone.
    </Alert>
  );
}

function SourcePaper({ source }: { source: Source }) {
  const { counters, guard } = source;
  return (
    <Paper component="section" aria-label={`Source ${source.id}`}>
      <Stack gap="sm">
        <Group gap="sm">
          <Title order={2} className="break">
            {source.id}
          </Title>
          <Status state={source.state} of="source" />
          <Text size="sm" c="dimmed">
            since <When ms={source.since_unix_ms} />
          </Text>
        </Group>
        {source.reason && <Text className="break">{source.reason}</Text>}
        <Facts
          facts={[
            [
              "Address",
              <span key="" className="mono">
                {source.url}
              </span>,
            ],
            ["Services", source.services],
            ["Endpoints", source.endpoints],
            ["Waited for", source.optional ? "no, it is optional" : "yes"],
            ["Position", source.position && `${source.position.index} of ${source.position.incarnation}`],
            ["Events", counters.events],
            ["Readings in full", counters.reloads],
            ["Reconnects", counters.reconnects],
            ["Ever held", guard.held],
            ["of which back", guard.returned],
            ["replaced", guard.replaced],
            ["expired", guard.expired],
            ["released", guard.released],
          ]}
        />
        {source.quarantine && <QuarantinePaper quarantine={source.quarantine} />}
        <Holds holds={source.holds} />
        {source.problem_count > 0 && <Problems source={source} />}
      </Stack>
    </Paper>
  );
}

function Problems({ source }: { source: Source }) {
  return (
    <details open={source.problem_count <= 5}>
      <summary>
        {source.problem_count} {source.problem_count === 1 ? "registration" : "registrations"} cannot be used
        {source.problem_count > source.problems.length && `; the first ${source.problems.length}`}
      </summary>
      <ul>
        {source.problems.map(({ path, reason }) => (
          <li key={path}>
            <span className="mono break">{path}</span>: {reason}
          </li>
        ))}
      </ul>
    </details>
  );
}
