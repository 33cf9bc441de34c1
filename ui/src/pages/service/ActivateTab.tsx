import { Alert, Grid, Paper, Stack, Text, Title } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useNavigate, useParams } from "react-router";
import { api, ifMatch, ok } from "../../api/client";
import { problemOf } from "../../api/problem";
import { plan } from "../../api/queries";
import { announce } from "../../lib/announce";
import { link } from "../../lib/links";
import { Act } from "../../parts/Act";
import { AudienceInput } from "../../parts/AudienceInput";
import { Loaded } from "../../parts/Loaded";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { To } from "../../parts/To";
import { useSearch } from "../../parts/useSearch";
import { Before } from "./Before";
import { useService } from "./context";
import { PlanView } from "./PlanView";
import { Again, useWay, WayFields, wayError, wayRequest } from "./way";

/** What activating a version would do, host by host, and doing it. */
export function Component() {
  const service = useService();
  const { name } = service;
  const version = Number(useParams().number);
  const navigate = useNavigate();
  const [audience, setAudience] = useSearch("audience");
  const [settled] = useDebouncedValue(audience.trim(), 300);
  const [way, setWay] = useWay();
  const [again, setAgain] = useState(false);
  const query = useQuery(plan(name, { version, audience: settled || undefined }));
  const wrong = query.data?.findings.some(({ severity }) => severity === "error");
  const starting = useMutation({
    mutationFn: (index: number) =>
      ok(
        api.POST("/api/v1/services/{service}/activations", {
          params: { path: { service: name }, header: { "If-Match": ifMatch(index) } },
          body: { version, audience: settled || undefined, again: again || undefined, ...wayRequest(way) },
        }),
      ),
    onSuccess: ({ activation, note }) => {
      announce(note ?? `${name}@${version} is on its way.`);
      if (activation) void navigate(link.activation(activation.id));
    },
  });
  const audienceProblem = query.error ? problemOf(query.error) : undefined;
  const unless =
    (query.isPending && "Tower is still planning.") ||
    (query.error && "It could not be planned.") ||
    (wrong && "The version has errors: see the findings.") ||
    wayError(way);
  return (
    <Stack>
      <Title order={2}>
        Activate <To to={link.version(name, version)}>{`${name}@${version}`}</To>
      </Title>
      {service.activation_in_progress && (
        <Alert color="orange" title="Another activation is under way" py="xs">
          <Text size="sm">
            <To to={link.activation(service.activation_in_progress.id)}>
              {service.activation_in_progress.id}
            </To>{" "}
            by {service.activation_in_progress.author}. Yours would take its place.
          </Text>
        </Alert>
      )}
      <Before service={name} version={version} />
      {service.rules > 0 && (
        <Alert color="gray" py="xs" title="Some hosts have another version by a rule">
          <Text size="sm">
            See <To to={link.service(name)}>who has what</To>. Once an activation for everyone has reached all
            hosts, it takes the place of these rules.
          </Text>
        </Alert>
      )}
      <Grid>
        <Grid.Col span={{ base: 12, md: 4 }}>
          <Paper component="section" aria-label="How">
            <Stack gap="sm">
              <AudienceInput
                value={audience}
                onChange={setAudience}
                error={audienceProblem?.field === "audience" ? audienceProblem.detail : undefined}
              />
              <WayFields way={way} onChange={setWay} />
              <Again checked={again} onChange={setAgain} />
              {starting.error && <ProblemAlert error={starting.error} />}
              {starting.data && !starting.data.activation && <Alert color="gray">{starting.data.note}</Alert>}
              <Act
                need={{ service: name }}
                unless={unless}
                size="sm"
                loading={starting.isPending}
                onClick={() => query.data && starting.mutate(query.data.index)}
              >
                {`Activate on ${query.data?.hosts.count ?? "…"} ${query.data?.hosts.count === 1 ? "host" : "hosts"}`}
              </Act>
            </Stack>
          </Paper>
        </Grid.Col>
        <Grid.Col span={{ base: 12, md: 8 }}>
          <Loaded query={query}>{(plan) => <PlanView plan={plan} service={name} />}</Loaded>
        </Grid.Col>
      </Grid>
    </Stack>
  );
}
