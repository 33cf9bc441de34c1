import { Badge, Button, Group, Radio, Stack, Table, Text } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useNavigate } from "react-router";
import { versions } from "../../api/queries";
import type { Version } from "../../api/types";
import { link } from "../../lib/links";
import { Act } from "../../parts/Act";
import { Loaded } from "../../parts/Loaded";
import { To } from "../../parts/To";
import { usePages } from "../../parts/usePages";
import { useSearch } from "../../parts/useSearch";
import { When } from "../../parts/When";
import { useService } from "./context";

/** All versions, and the difference of any two of them. */
export function Component() {
  const { name, active } = useService();
  const navigate = useNavigate();
  const query = useInfiniteQuery(versions(name));
  const { rows, more, complete } = usePages(query, (page) => page.versions);
  const [chosenFrom, setFrom] = useSearch("from");
  const [chosenTo, setTo] = useSearch("to");
  const to = chosenTo || String(rows[0]?.number ?? "");
  const from = chosenFrom || String(rows[1]?.number ?? "");
  return (
    <Loaded query={query}>
      {() =>
        rows.length === 0 ? (
          <Stack gap="sm" align="flex-start">
            <Text>The service has no versions yet.</Text>
            <Act need={{ service: name }} to={link.service(name, "callers")}>
              Write the first document
            </Act>
          </Stack>
        ) : (
          <Stack>
            <Group>
              <Button
                disabled={!from || !to || from === to}
                onClick={() => void navigate(link.diff(name, Number(from), Number(to)))}
              >
                Compare {from ? `@${from} with @${to}` : "two versions"}
              </Button>
              <Text size="sm" c="dimmed">
                Choose two in the first columns.
              </Text>
            </Group>
            <div className="rows">
              <Table style={{ tableLayout: "auto" }}>
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th scope="col">From</Table.Th>
                    <Table.Th scope="col">To</Table.Th>
                    <Table.Th scope="col">Version</Table.Th>
                    <Table.Th scope="col">State</Table.Th>
                    <Table.Th scope="col">Author</Table.Th>
                    <Table.Th scope="col">Reason</Table.Th>
                    <Table.Th scope="col">Uploaded</Table.Th>
                    <Table.Th scope="col">
                      <span className="visually-hidden">What can be done</span>
                    </Table.Th>
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {rows.map((version) => (
                    <Table.Tr key={version.number}>
                      <Table.Td w={50}>
                        <Choice label="from" version={version} chosen={from} onChoose={setFrom} />
                      </Table.Td>
                      <Table.Td w={50}>
                        <Choice label="to" version={version} chosen={to} onChoose={setTo} />
                      </Table.Td>
                      <Table.Td>
                        <To to={link.version(name, version.number)}>{version.version}</To>
                      </Table.Td>
                      <Table.Td>
                        <VersionState version={version} isDefault={version.number === active?.version} />
                      </Table.Td>
                      <Table.Td>{version.author}</Table.Td>
                      <Table.Td className="break">{version.reason}</Table.Td>
                      <Table.Td>
                        <When ms={version.uploaded_unix_ms} />
                      </Table.Td>
                      <Table.Td ta="right">
                        <Act
                          need={{ service: name }}
                          unless={version.retired && "It is retired, and cannot be activated any more."}
                          variant="default"
                          size="compact-xs"
                          to={link.activate(name, version.number)}
                        >
                          Activate …
                        </Act>
                      </Table.Td>
                    </Table.Tr>
                  ))}
                </Table.Tbody>
              </Table>
            </div>
            {!complete && (
              <Button variant="default" w="fit-content" onClick={more}>
                Older versions
              </Button>
            )}
          </Stack>
        )
      }
    </Loaded>
  );
}

interface ChoiceProps {
  label: "from" | "to";
  version: Version;
  chosen: string;
  onChoose: (number: string) => void;
}

function Choice({ label, version, chosen, onChoose }: ChoiceProps) {
  const number = String(version.number);
  return (
    <Radio
      name={label}
      size="xs"
      aria-label={`Compare ${label} ${version.version}`}
      checked={chosen === number}
      onChange={() => onChoose(number)}
    />
  );
}

export function VersionState({ version, isDefault }: { version: Version; isDefault: boolean }) {
  return (
    <Group gap={4}>
      {isDefault && <Badge color="teal">active</Badge>}
      {version.active && !isDefault && <Badge color="gray">in a rule, or kept by hosts</Badge>}
      {version.approved && <Badge color="blue">approved</Badge>}
      {version.retired && <Badge color="gray">retired</Badge>}
    </Group>
  );
}
