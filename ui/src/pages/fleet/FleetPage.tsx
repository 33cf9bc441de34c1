import { Group, NativeSelect, SegmentedControl, SimpleGrid, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { fleet } from "../../api/queries";
import { Loaded } from "../../parts/Loaded";
import { Page } from "../../parts/Page";
import { useSearch } from "../../parts/useSearch";
import { Counts } from "./Counts";
import { Groups } from "./Groups";
import { HostRows } from "./HostRows";
import { LastChanges } from "./LastChanges";
import { LatencyPaper } from "./LatencyPaper";
import { RefusedBeacons } from "./RefusedBeacons";
import { SourcesPaper } from "./SourcesPaper";
import { groupsOf } from "./states";
import { TowersPaper } from "./TowersPaper";

/** What is active where, and what is wrong. */
export function Component() {
  const query = useQuery(fleet);
  const [state, setState] = useSearch("state");
  const [by, setBy] = useSearch("by", "host");
  return (
    <Page title="Fleet">
      <Loaded query={query}>
        {({ hosts }) => (
          <Counts
            hosts={hosts}
            state={state}
            onState={(state) => {
              setState(state);
              setBy("host");
            }}
          />
        )}
      </Loaded>
      <SimpleGrid cols={{ base: 1, lg: 2 }}>
        <LastChanges />
        <LatencyPaper />
        <SourcesPaper />
        <TowersPaper />
      </SimpleGrid>
      {query.data && <RefusedBeacons refused={query.data.refused} />}
      <Group gap="md" mt="xs">
        <Title order={2}>Hosts</Title>
        <Loaded query={query}>
          {({ labels }) => <ByControl by={by} labels={Object.keys(labels)} onChange={setBy} />}
        </Loaded>
      </Group>
      {by === "host" ? (
        <HostRows />
      ) : (
        <Loaded query={query}>{(fleet) => <Groups by={by} groups={groupsOf(fleet, by)} />}</Loaded>
      )}
    </Page>
  );
}

interface ByProps {
  by: string;
  labels: string[];
  onChange: (by: string) => void;
}

/** One by one, or put together. */
function ByControl({ by, labels, onChange }: ByProps) {
  const label = by.startsWith("label:") ? by : "";
  return (
    <Group gap="xs">
      <SegmentedControl
        size="xs"
        aria-label="How hosts are listed"
        value={label ? "" : by}
        onChange={onChange}
        data={[
          { value: "host", label: "One by one" },
          { value: "zone", label: "By zone" },
          { value: "workload", label: "By workload" },
        ]}
      />
      {labels.length > 0 && (
        <NativeSelect
          size="xs"
          aria-label="By the value of a label"
          value={label}
          onChange={(event) => onChange(event.currentTarget.value || "host")}
          data={[
            { value: "", label: "By label …" },
            ...labels.map((key) => ({ value: `label:${key}`, label: `By label ${key}` })),
          ]}
        />
      )}
    </Group>
  );
}
