import { Badge, Table } from "@mantine/core";
import type { Change } from "../api/types";

interface Props {
  changes: Change[];
  /** Whether who wrote each is told. */
  authored?: boolean;
}

/** What two documents differ in, field by field. */
export function Changes({ changes, authored }: Props) {
  return (
    <Table aria-label="Differences">
      <Table.Thead>
        <Table.Tr>
          <Table.Th scope="col">Field</Table.Th>
          <Table.Th scope="col">Before</Table.Th>
          <Table.Th scope="col">After</Table.Th>
          <Table.Th scope="col">Owner</Table.Th>
          {authored && <Table.Th scope="col">Author</Table.Th>}
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {changes.map(({ field, before, after, owner, author }) => (
          <Table.Tr key={field}>
            <Table.Td className="mono break">{field}</Table.Td>
            <Table.Td>
              <Value value={before} side="before" />
            </Table.Td>
            <Table.Td>
              <Value value={after} side="after" />
            </Table.Td>
            <Table.Td>{owner && <Badge color="gray">{owner}</Badge>}</Table.Td>
            {authored && <Table.Td>{author}</Table.Td>}
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

function Value({ value, side }: { value: unknown; side: "before" | "after" }) {
  if (value === undefined || value === null) return <span className="dim">not there</span>;
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 1);
  return <span className={`mono break pre ${side}`}>{text}</span>;
}
