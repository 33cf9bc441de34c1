import {
  Alert,
  Grid,
  Group,
  List,
  NumberInput,
  Paper,
  SegmentedControl,
  Slider,
  Stack,
  Text,
  Title,
} from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { useNavigate } from "react-router";
import { api, ifMatch, ok } from "../../api/client";
import type { ServiceDetail } from "../../api/types";
import { announce } from "../../lib/announce";
import { link } from "../../lib/links";
import { percentages, rash, shift } from "../../lib/weights";
import { Act } from "../../parts/Act";
import { AudienceInput } from "../../parts/AudienceInput";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { To } from "../../parts/To";
import { useSearch } from "../../parts/useSearch";
import { useService } from "./context";
import { type SplitRoute, splitRoutes } from "./split";
import { useWay, WayFields, wayError, wayRequest } from "./way";

/** Other weights of subsets and nothing else, as a new version that is activated at once. */
export function Component() {
  const service = useService();
  const routes = splitRoutes(service);
  const [chosen, setChosen] = useSearch("route");
  const route = routes.find(({ name }) => name === chosen) ?? routes[0];
  if (!route) {
    return (
      <Text>
        No active route goes to subsets.{" "}
        <To to={link.service(service.name, "callers")}>Give the service subsets, and a route to them</To>, and
        activate that; then the shares can be changed here.
      </Text>
    );
  }
  return (
    <Stack>
      {routes.length > 1 && (
        <SegmentedControl
          size="xs"
          w="fit-content"
          aria-label="Route"
          data={routes.map(({ name }) => name)}
          value={route.name}
          onChange={setChosen}
        />
      )}
      <Shares key={`${route.name} ${service.active?.release}`} service={service} route={route} />
    </Stack>
  );
}

function Shares({ service, route }: { service: ServiceDetail; route: SplitRoute }) {
  const { name } = service;
  const navigate = useNavigate();
  const before = percentages(route.weights);
  const [shares, setShares] = useState(before);
  const [audience, setAudience] = useState("");
  const [way, setWay] = useWay();
  const warnings = rash(before, shares);
  const same = Object.keys(before).every((subset) => before[subset] === shares[subset]);
  const setting = useMutation({
    mutationFn: () =>
      ok(
        api.PUT("/api/v1/services/{service}/traffic", {
          params: { path: { service: name }, header: { "If-Match": ifMatch(service.index) } },
          body: {
            weights: shares,
            route: route.name,
            audience: audience.trim() || undefined,
            ...wayRequest(way),
          },
        }),
      ),
    onSuccess: ({ activation, note }) => {
      announce(note ?? "The new weights are on their way.");
      if (activation) void navigate(link.activation(activation.id));
    },
  });
  const unless =
    (same && "The shares are as they are now.") ||
    (way.reason.trim() === "" && "It needs a reason.") ||
    wayError(way);
  return (
    <Grid>
      <Grid.Col span={{ base: 12, md: 7 }}>
        <Paper component="section" aria-label="Shares">
          <Title order={2} mb="md">
            Shares of the route {route.name}
          </Title>
          <Stack gap="lg">
            {Object.entries(shares).map(([subset, share]) => (
              <div key={subset}>
                <Group justify="space-between" mb={4}>
                  <Text size="sm" fw={600} className="break">
                    {subset}
                  </Text>
                  <Group gap="xs">
                    <Text size="sm" c="dimmed" className="tnum">
                      now {before[subset]} %{share !== before[subset] && " →"}
                    </Text>
                    <NumberInput
                      aria-label={`Percent for ${subset}`}
                      size="xs"
                      w={72}
                      min={0}
                      max={100}
                      suffix=" %"
                      value={share}
                      onChange={(value) => setShares(shift(shares, subset, Number(value) || 0))}
                    />
                  </Group>
                </Group>
                <Slider
                  thumbLabel={`Share of ${subset}`}
                  value={share}
                  label={(value) => `${value} %`}
                  onChange={(value) => setShares(shift(shares, subset, value))}
                />
              </div>
            ))}
          </Stack>
          <Text size="sm" c="dimmed" mt="md">
            The others share what is left, in the proportions that they have.
          </Text>
          {warnings.length > 0 && (
            <Alert color="orange" mt="md" py="xs" title="That is a large step">
              <List size="sm">
                {warnings.map((warning) => (
                  <List.Item key={warning}>{warning}</List.Item>
                ))}
              </List>
            </Alert>
          )}
        </Paper>
      </Grid.Col>
      <Grid.Col span={{ base: 12, md: 5 }}>
        <Paper component="section" aria-label="How">
          <Stack gap="sm">
            <AudienceInput value={audience} onChange={setAudience} />
            <WayFields way={way} onChange={setWay} reasonNeeded />
            {setting.error && <ProblemAlert error={setting.error} />}
            {setting.data && !setting.data.activation && <Alert color="gray">{setting.data.note}</Alert>}
            <Act
              need={{ service: name }}
              unless={unless}
              size="sm"
              loading={setting.isPending}
              onClick={() => setting.mutate()}
            >
              Set these weights
            </Act>
          </Stack>
        </Paper>
      </Grid.Col>
    </Grid>
  );
}
