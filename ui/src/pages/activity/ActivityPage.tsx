import { Button, Group, Select, Stack, Text, TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { useLive } from "../../api/live";
import { activity } from "../../api/queries";
import { Waiting } from "../../parts/Loaded";
import { Page } from "../../parts/Page";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { usePages } from "../../parts/usePages";
import { useSearch } from "../../parts/useSearch";
import { EntryList } from "./EntryList";
import { commands, isByTower, merge, takes } from "./filter";

/** Who did what, when and why, as it happens. Every filter is in the address. */
export function Component() {
  const [service, setService] = useSearch("service");
  const [author, setAuthor] = useSearch("author");
  const [command, setCommand] = useSearch("command");
  const [show, setShow] = useSearch("show", "all");
  const { entries: live } = useLive();
  const filter = {
    service: service || undefined,
    author: author || undefined,
    command: command || undefined,
  };
  const query = useInfiniteQuery(activity(filter));
  const { rows, more, complete } = usePages(query, (page) => page.entries);
  const entries = useMemo(() => {
    const all = merge(
      live.filter((entry) => takes({ service, author, command }, entry)),
      rows,
    );
    return show === "people" ? all.filter((entry) => !isByTower(entry)) : all;
  }, [live, rows, show, service, author, command]);
  return (
    <Page title="Activity">
      <Group gap="xs" align="flex-end">
        <FilterInput label="Service" value={service} onChange={setService} />
        <FilterInput label="Author" value={author} onChange={setAuthor} />
        <Select
          label="Command"
          size="xs"
          w={150}
          placeholder="any"
          data={commands}
          clearable
          value={command || null}
          onChange={(value) => setCommand(value ?? "")}
        />
        <Select
          label="By"
          size="xs"
          w={180}
          allowDeselect={false}
          data={[
            { value: "all", label: "people and Tower" },
            { value: "people", label: "people" },
          ]}
          value={show}
          onChange={(value) => setShow(value ?? "all")}
        />
      </Group>
      {query.error && <ProblemAlert error={query.error} onRetry={() => void query.refetch()} />}
      {query.isPending ? (
        <Waiting />
      ) : (
        <Stack gap="sm">
          <EntryList entries={entries} />
          {complete ? (
            <Text size="sm" c="dimmed">
              {entries.length === 0 ? "Nothing happened that fits this." : "That is where the log begins."}
            </Text>
          ) : (
            <Button variant="default" w="fit-content" onClick={more} loading={query.isFetchingNextPage}>
              Older entries
            </Button>
          )}
        </Stack>
      )}
    </Page>
  );
}

function FilterInput(props: { label: string; value: string; onChange: (value: string) => void }) {
  const [text, setText] = useState(props.value);
  useEffect(() => setText(props.value), [props.value]);
  const tell = useDebouncedCallback(props.onChange, 300);
  return (
    <TextInput
      label={props.label}
      size="xs"
      w={180}
      placeholder="any"
      value={text}
      onChange={(event) => {
        setText(event.currentTarget.value);
        tell(event.currentTarget.value.trim());
      }}
    />
  );
}
