import { Group, Table, Text, UnstyledButton } from "@mantine/core";
import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown, ArrowUp } from "lucide-react";
import { memo, type ReactNode, useEffect, useRef } from "react";

export interface Column<T> {
  id: string;
  head: ReactNode;
  /** CSS width; what is left over is shared by columns without one. */
  width?: number | string;
  align?: "right";
  cell: (row: T) => ReactNode;
  /** The word by which the server sorts by this column. */
  sort?: string;
  /** Which way it does. */
  order?: "ascending" | "descending";
}

interface Props<T> {
  label: string;
  columns: Column<T>[];
  rows: T[];
  rowKey: (row: T) => string;
  /** Of all that there are; more than `rows` while pages are missing. */
  total?: number;
  sort?: string;
  onSort?: (sort: string) => void;
  /** Gets the next page, if there is one. */
  onEnd?: () => void;
  empty: ReactNode;
  height?: string;
}

const ROW_PX = 35;

/** A table of which only the rows in sight are drawn. Pages come from the server as one scrolls. */
export function Rows<T>(props: Props<T>) {
  const { label, columns, rows, rowKey, total, sort, onSort, onEnd, empty } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: 8,
  });
  const drawn = virtual.getVirtualItems();
  const first = drawn[0];
  const last = drawn.at(-1);
  const nearEnd = last ? last.index >= rows.length - 30 : false;
  useEffect(() => {
    if (nearEnd) onEnd?.();
  }, [nearEnd, onEnd]);

  if (rows.length === 0) return <Text c="dimmed">{empty}</Text>;
  const spacer = (px: number, key: string) =>
    px > 0 && (
      <tr key={key} aria-hidden style={{ height: px }}>
        <td colSpan={columns.length} style={{ padding: 0 }} />
      </tr>
    );
  return (
    <section
      className="rows"
      ref={scroller}
      style={{ maxHeight: props.height ?? "calc(100dvh - 260px)" }}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
      tabIndex={0}
      aria-label={label}
    >
      <Table aria-rowcount={(total ?? rows.length) + 1}>
        <Table.Thead>
          <Table.Tr aria-rowindex={1}>
            {columns.map((column) => (
              <Table.Th
                key={column.id}
                scope="col"
                style={{ width: column.width, textAlign: column.align }}
                aria-sort={column.sort && column.sort === sort ? (column.order ?? "descending") : undefined}
              >
                {column.sort && onSort ? (
                  <UnstyledButton fz="xs" fw={600} onClick={() => onSort(column.sort as string)}>
                    <Group gap={4} wrap="nowrap" component="span" display="inline-flex">
                      {column.head}
                      {column.sort === sort &&
                        (column.order === "ascending" ? (
                          <ArrowUp size={12} aria-hidden />
                        ) : (
                          <ArrowDown size={12} aria-hidden />
                        ))}
                    </Group>
                  </UnstyledButton>
                ) : (
                  column.head
                )}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {spacer(first?.start ?? 0, "above")}
          {drawn.map((item) => {
            const row = rows[item.index] as T;
            return (
              <Row
                key={rowKey(row)}
                row={row}
                columns={columns as Column<unknown>[]}
                place={item.index + 2}
              />
            );
          })}
          {spacer(virtual.getTotalSize() - (last?.end ?? 0), "below")}
        </Table.Tbody>
      </Table>
    </section>
  );
}

interface RowProps {
  row: unknown;
  columns: Column<unknown>[];
  place: number;
}

/** Drawn once, and not again with each step that one scrolls. */
const Row = memo(function Row({ row, columns, place }: RowProps) {
  return (
    <tr className="row mantine-Table-tr" aria-rowindex={place}>
      {columns.map((column) => (
        <td key={column.id} className={column.align === "right" ? "right" : undefined}>
          {column.cell(row)}
        </td>
      ))}
    </tr>
  );
});
