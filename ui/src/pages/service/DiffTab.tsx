import { Group, NativeSelect, Paper, SegmentedControl, Stack, Text } from "@mantine/core";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Suspense } from "react";
import { diff, document, versions } from "../../api/queries";
import { TextDiff } from "../../editor";
import { Changes } from "../../parts/Changes";
import { Loaded, Waiting } from "../../parts/Loaded";
import { useSearch } from "../../parts/useSearch";
import { useService } from "./context";

/** How any two versions differ: by what they mean, and by their text. */
export function Component() {
  const { name } = useService();
  const [from, setFrom] = useSearch("from");
  const [to, setTo] = useSearch("to");
  const [view, setView] = useSearch("view", "meaning");
  const known = useInfiniteQuery(versions(name));
  const numbers = known.data?.pages.flatMap((page) => page.versions.map(({ number }) => number)) ?? [];
  const data = numbers.map((number) => ({ value: String(number), label: `${name}@${number}` }));
  return (
    <Stack>
      <Group align="flex-end">
        <NativeSelect
          label="From"
          size="xs"
          data={data}
          value={from}
          onChange={(e) => setFrom(e.currentTarget.value)}
        />
        <NativeSelect
          label="To"
          size="xs"
          data={data}
          value={to}
          onChange={(e) => setTo(e.currentTarget.value)}
        />
        <SegmentedControl
          size="xs"
          aria-label="Kind of difference"
          value={view}
          onChange={setView}
          data={[
            { value: "meaning", label: "By meaning" },
            { value: "text", label: "By text" },
          ]}
        />
      </Group>
      {from &&
        to &&
        (view === "text" ? (
          <ByText from={Number(from)} to={Number(to)} />
        ) : (
          <ByMeaning from={Number(from)} to={Number(to)} />
        ))}
    </Stack>
  );
}

interface Props {
  from: number;
  to: number;
}

function ByMeaning({ from, to }: Props) {
  const { name } = useService();
  const query = useQuery(diff(name, from, to));
  return (
    <Paper>
      <Loaded query={query}>
        {({ changes }) =>
          changes.length > 0 ? (
            <Changes changes={changes} />
          ) : (
            <Text>They mean the same; their texts may differ.</Text>
          )
        }
      </Loaded>
    </Paper>
  );
}

function ByText({ from, to }: Props) {
  const { name } = useService();
  const before = useQuery(document(name, from));
  const after = useQuery(document(name, to));
  return (
    <Paper p={0}>
      <Loaded query={before}>
        {(before) => (
          <Loaded query={after}>
            {(after) => (
              <Suspense fallback={<Waiting />}>
                <TextDiff before={before} after={after} label={`${name}@${from} and ${name}@${to}`} />
              </Suspense>
            )}
          </Loaded>
        )}
      </Loaded>
    </Paper>
  );
}
