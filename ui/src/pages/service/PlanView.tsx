import { Badge, Paper, Stack, Table, Text, TextInput, Title } from "@mantine/core";
import { useState } from "react";
import type { Plan, Schemas } from "../../api/types";
import { link } from "../../lib/links";
import { Changes } from "../../parts/Changes";
import { Findings } from "../../parts/Findings";
import { To } from "../../parts/To";

/** What a change would do: what is wrong with it, which fields, which connections, and exactly which hosts. */
export function PlanView({ plan, service }: { plan: Plan; service: string }) {
  return (
    <Stack>
      {plan.findings.length > 0 && (
        <Paper component="section" aria-label="Findings">
          <Title order={2} mb="xs">
            Findings
          </Title>
          <Findings findings={plan.findings} />
        </Paper>
      )}
      {plan.from.map((from) => (
        <Paper
          key={from.release?.release ?? "none"}
          component="section"
          aria-label={`Hosts with ${from.release ? `${service}@${from.release.version}` : "no document"} now`}
        >
          <Title order={2} mb="xs">
            For {from.hosts} {from.hosts === 1 ? "host" : "hosts"} with{" "}
            {from.release ? `${service}@${from.release.version}` : "no document"} now
          </Title>
          {from.changes.length > 0 ? (
            <Changes changes={from.changes} />
          ) : (
            <Text size="sm">The document means the same as what they have.</Text>
          )}
          <Title order={3} mt="md" mb="xs">
            What it does to connections
          </Title>
          <Effects effects={from.effects} />
        </Paper>
      ))}
      <HostNames hosts={plan.hosts} audience={plan.audience} />
    </Stack>
  );
}

const EFFECTS: Record<Schemas["Effect"], { words: string; color: string }> = {
  no_drain: { words: "nothing", color: "teal" },
  pools_reset: { words: "to endpoints: made anew", color: "yellow" },
  connections_drained: { words: "of clients: drained", color: "orange" },
};

function Effects({ effects }: { effects: Schemas["ResourceEffect"][] }) {
  if (effects.length === 0) return <Text size="sm">Nothing: no resource changes.</Text>;
  return (
    <Table>
      <Table.Thead>
        <Table.Tr>
          <Table.Th scope="col">Resource</Table.Th>
          <Table.Th scope="col">It is</Table.Th>
          <Table.Th scope="col">To connections</Table.Th>
          <Table.Th scope="col">Why</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {effects.map(({ kind, name, action, effect, why }) => (
          <Table.Tr key={`${kind} ${name}`}>
            <Table.Td className="break">
              {kind.replace("_", " ")} <span className="mono">{name}</span>
            </Table.Td>
            <Table.Td>{{ add: "added", change: "changed", remove: "removed" }[action]}</Table.Td>
            <Table.Td>
              <Badge color={EFFECTS[effect].color} className="status">
                {EFFECTS[effect].words}
              </Badge>
            </Table.Td>
            <Table.Td>{why}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

function HostNames({ hosts, audience }: { hosts: Schemas["Hosts"]; audience: string }) {
  const [search, setSearch] = useState("");
  const found = hosts.names.filter((name) => name.includes(search));
  return (
    <Paper component="section" aria-label="Affected hosts">
      <Title order={2} mb="xs">
        {hosts.count === 0
          ? "No host is affected"
          : `${hosts.count} ${hosts.count === 1 ? "host is" : "hosts are"} affected`}
      </Title>
      <Text size="sm" c="dimmed" mb="xs">
        Those of {audience}, by their latest reports, that would have another release.
        {hosts.count > hosts.names.length && ` The first ${hosts.names.length} are listed.`}
      </Text>
      {hosts.names.length > 10 && (
        <TextInput
          size="xs"
          mb="xs"
          w={260}
          aria-label="Search the affected hosts"
          placeholder="Search the affected hosts"
          value={search}
          onChange={(event) => setSearch(event.currentTarget.value)}
        />
      )}
      <div className="names">
        {found.map((name) => (
          <To key={name} to={link.host(name)} size="sm" className="break">
            {name}
          </To>
        ))}
      </div>
    </Paper>
  );
}
