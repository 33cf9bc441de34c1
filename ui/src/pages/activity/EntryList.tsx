import { Badge, Group, Text } from "@mantine/core";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { Link2 } from "lucide-react";
import { Fragment, useRef } from "react";
import type { Entry } from "../../api/types";
import { link } from "../../lib/links";
import { To } from "../../parts/To";
import { When } from "../../parts/When";
import { isByTower } from "./filter";

/** Entries, the newest first; only those in sight are drawn. */
export function EntryList({ entries }: { entries: Entry[] }) {
  const list = useRef<HTMLDivElement>(null);
  const virtual = useWindowVirtualizer({
    count: entries.length,
    estimateSize: () => 52,
    overscan: 15,
    scrollMargin: list.current?.offsetTop ?? 0,
    getItemKey: (index) => entries[index]?.index ?? index,
  });
  return (
    <div
      ref={list}
      className="entries"
      role="feed"
      aria-label="Activity"
      style={{ height: virtual.getTotalSize() }}
    >
      {virtual.getVirtualItems().map((item) => {
        const entry = entries[item.index] as Entry;
        return (
          <article
            key={item.key}
            ref={virtual.measureElement}
            data-index={item.index}
            aria-posinset={item.index + 1}
            aria-setsize={-1}
            aria-label={`Entry ${entry.index}`}
            style={{ transform: `translateY(${item.start - virtual.options.scrollMargin}px)` }}
          >
            <EntryLine entry={entry} />
          </article>
        );
      })}
    </div>
  );
}

const servicesOf = (entry: Entry) => [...new Set(entry.events.flatMap(({ service }) => service ?? []))];

function EntryLine({ entry }: { entry: Entry }) {
  return (
    <Group gap="sm" wrap="nowrap" align="flex-start">
      <Text size="sm" c="dimmed" w={78} style={{ flexShrink: 0 }}>
        <When ms={entry.time_unix_ms} />
      </Text>
      <Badge color={isByTower(entry) ? "gray" : "indigo"} w={104} style={{ flexShrink: 0 }}>
        {entry.command}
      </Badge>
      <div style={{ minWidth: 0, flex: 1 }}>
        {entry.events.map((event) => (
          <Text key={`${event.kind} ${event.summary}`} size="sm" className="break">
            {event.summary}
          </Text>
        ))}
        <Text size="xs" c="dimmed" className="break">
          {entry.author}
          {entry.reason && `: “${entry.reason}”`}
          {servicesOf(entry).map((service) => (
            <Fragment key={service}>
              {" · "}
              <To to={link.service(service)}>{service}</To>
            </Fragment>
          ))}
        </Text>
      </div>
      <To to={link.entry(entry.index)} size="sm" aria-label={`Entry ${entry.index}`}>
        <Group gap={4} wrap="nowrap">
          <Link2 size={13} aria-hidden />
          {entry.index}
        </Group>
      </To>
    </Group>
  );
}
