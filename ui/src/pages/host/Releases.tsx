import { Paper, Stack, Table, Text, Tooltip } from "@mantine/core";
import type { Schemas } from "../../api/types";
import { link } from "../../lib/links";
import { Status } from "../../parts/Status";
import { To } from "../../parts/To";
import { When } from "../../parts/When";
import { Rejected } from "./Rejected";

const BAD = ["rejected", "host_fault", "unusable", "lost", "silent", "not_reported", "pending"];

/** What the host holds of each service that has a document, the worst first. */
export function Releases({ releases }: { releases: Schemas["Held"][] }) {
  if (releases.length === 0) {
    return (
      <Text c="dimmed">No service has an active document; the host serves all as they are discovered.</Text>
    );
  }
  const rank = (state: string) => (BAD.includes(state) ? BAD.indexOf(state) : BAD.length);
  const sorted = [...releases].sort(
    (a, b) => rank(a.state) - rank(b.state) || a.service.localeCompare(b.service),
  );
  return (
    <Stack>
      {sorted.flatMap(({ service, rejection, release }) =>
        rejection
          ? [
              <Rejected
                key={service}
                service={service}
                rejection={rejection}
                release={release ?? undefined}
              />,
            ]
          : [],
      )}
      <Paper p={0}>
        <Table>
          <Table.Thead>
            <Table.Tr>
              <Table.Th scope="col">Service</Table.Th>
              <Table.Th scope="col">State</Table.Th>
              <Table.Th scope="col">Holds</Table.Th>
              <Table.Th scope="col">Should hold</Table.Th>
              <Table.Th scope="col">Since</Table.Th>
              <Table.Th scope="col">Detail</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {sorted.map((held) => (
              <Table.Tr key={held.service}>
                <Table.Td>
                  <To to={link.service(held.service)}>{held.service}</To>
                </Table.Td>
                <Table.Td>
                  <Status state={held.state} />
                </Table.Td>
                <Table.Td>
                  <Version service={held.service} number={held.version} release={held.release} />
                </Table.Td>
                <Table.Td>
                  {held.wanted === held.release ? (
                    "the same"
                  ) : (
                    <Version service={held.service} number={held.wanted_version} release={held.wanted} />
                  )}
                </Table.Td>
                <Table.Td>
                  <When ms={held.since_unix_ms} />
                </Table.Td>
                <Table.Td className="break">{held.detail}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Paper>
    </Stack>
  );
}

interface VersionProps {
  service: string;
  number?: number | null;
  release?: string | null;
}

/** A release by the version that is in it. */
function Version({ service, number, release }: VersionProps) {
  if (!release) return "no document";
  if (!number) return <span className="mono">{release}</span>;
  return (
    <Tooltip label={`Release ${release}: the version, and the parts of platform and security of then.`}>
      <span>
        <To to={link.version(service, number)}>{`${service}@${number}`}</To>
      </span>
    </Tooltip>
  );
}
