import { Paper, SimpleGrid, Stack, Table, Text, Title } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { activations } from "../../api/queries";
import type { ServiceDetail } from "../../api/types";
import { link } from "../../lib/links";
import { Act } from "../../parts/Act";
import { Findings } from "../../parts/Findings";
import { Loaded } from "../../parts/Loaded";
import { Status } from "../../parts/Status";
import { To } from "../../parts/To";
import { When } from "../../parts/When";
import { useService } from "./context";
import { EffectivePaper } from "./EffectivePaper";

/** Who has what, how the last changes went, and what takes effect, with whose it is. */
export function Component() {
  const service = useService();
  return (
    <Stack>
      {service.findings.length > 0 && (
        <Paper component="section" aria-label="Remarks about the active document">
          <Title order={2} mb="xs">
            Remarks about the active document
          </Title>
          <Findings findings={service.findings} />
        </Paper>
      )}
      <SimpleGrid cols={{ base: 1, lg: 2 }}>
        <Assignment service={service} />
        <LastActivations service={service.name} />
      </SimpleGrid>
      <EffectivePaper service={service} />
    </Stack>
  );
}

function Assignment({ service }: { service: ServiceDetail }) {
  const { name, assignment } = service;
  const nothing = assignment.length === 0 || (assignment.length === 1 && !assignment[0]?.release);
  return (
    <Paper component="section" aria-label="Who has what">
      <Title order={2} mb="xs">
        Who has what
      </Title>
      {nothing ? (
        <Stack gap="sm" align="flex-start">
          <Text size="sm">
            {service.latest_version
              ? "No version is active: hosts get the service as it is discovered, with defaults."
              : "The service has no document yet: hosts get it as it is discovered, with defaults."}
          </Text>
          <Act
            need={{ service: name }}
            to={link.service(name, service.latest_version ? "versions" : "callers")}
          >
            {service.latest_version ? "Choose a version to activate" : "Write the first document"}
          </Act>
        </Stack>
      ) : (
        <Table>
          <Table.Thead>
            <Table.Tr>
              <Table.Th scope="col">Hosts</Table.Th>
              <Table.Th scope="col">Version</Table.Th>
              <Table.Th scope="col">Release</Table.Th>
              <Table.Th scope="col">By</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {assignment.map(({ audience, release, activation }, place) => (
              <Table.Tr key={`${audience} ${activation}`}>
                <Table.Td className="break">
                  {place > 0 && audience === "everyone" ? "everyone else" : audience}
                </Table.Td>
                <Table.Td>
                  {release ? (
                    <To to={link.version(name, release.version)}>{`${name}@${release.version}`}</To>
                  ) : (
                    "no document"
                  )}
                </Table.Td>
                <Table.Td className="mono">{release?.release}</Table.Td>
                <Table.Td>{activation && <To to={link.activation(activation)}>{activation}</To>}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
    </Paper>
  );
}

function LastActivations({ service }: { service: string }) {
  const query = useInfiniteQuery(activations(service));
  return (
    <Paper component="section" aria-label="Last activations">
      <Title order={2} mb="xs">
        Last activations
      </Title>
      <Loaded query={query}>
        {({ pages }) => {
          const last = pages[0]?.activations.slice(0, 6) ?? [];
          if (last.length === 0) return <Text c="dimmed">There was none yet.</Text>;
          return (
            <Table>
              <Table.Thead>
                <Table.Tr>
                  <Table.Th scope="col">Activation</Table.Th>
                  <Table.Th scope="col">State</Table.Th>
                  <Table.Th scope="col">Version</Table.Th>
                  <Table.Th scope="col">By</Table.Th>
                  <Table.Th scope="col">Began</Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {last.map((activation) => (
                  <Table.Tr key={activation.id}>
                    <Table.Td>
                      <To to={link.activation(activation.id)}>{activation.id}</To>
                    </Table.Td>
                    <Table.Td>
                      <Status state={activation.state} />
                    </Table.Td>
                    <Table.Td>
                      {service}@{activation.version}
                    </Table.Td>
                    <Table.Td className="break">
                      {activation.author}
                      {activation.reason && `: “${activation.reason}”`}
                    </Table.Td>
                    <Table.Td>
                      <When ms={activation.started_unix_ms} />
                    </Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          );
        }}
      </Loaded>
      <Text size="sm" mt="xs">
        <To to={link.activityOf(service)}>Everything that happened to it</To>
      </Text>
    </Paper>
  );
}
