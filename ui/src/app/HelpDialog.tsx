import { Group, Kbd, Modal, Table } from "@mantine/core";
import { places } from "./places";

const OTHERS: [string[], string][] = [
  [["Ctrl", "K"], "Find a service, a host, a page"],
  [["/"], "Search in the list of this page"],
  [["?"], "These keys"],
  [["Esc"], "Close what is open"],
];

export function HelpDialog({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const rows = [...places.map(({ key, label }): [string[], string] => [["g", key], label]), ...OTHERS];
  return (
    <Modal opened={opened} onClose={onClose} title="Keys" closeButtonProps={{ "aria-label": "Close" }}>
      <Table>
        <Table.Tbody>
          {rows.map(([keys, what]) => (
            <Table.Tr key={what}>
              <Table.Td w={120}>
                <Group gap={4}>
                  {keys.map((key) => (
                    <Kbd key={key}>{key}</Kbd>
                  ))}
                </Group>
              </Table.Td>
              <Table.Td>{what}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Modal>
  );
}
