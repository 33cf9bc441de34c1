import { Alert, Group, Paper, Tabs, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useParams } from "react-router";
import { host } from "../../api/queries";
import type { Schemas } from "../../api/types";
import { Facts } from "../../parts/Facts";
import { Loaded } from "../../parts/Loaded";
import { Page } from "../../parts/Page";
import { Status } from "../../parts/Status";
import { useSearch } from "../../parts/useSearch";
import { When } from "../../parts/When";
import { Envoys } from "./Envoys";
import { Releases } from "./Releases";
import { ServedConfig } from "./ServedConfig";

/** A host: what it should hold and holds, what its Envoys made of it, and what they are served. */
export function Component() {
  const { host: name = "" } = useParams();
  const [tab, setTab] = useSearch("tab", "releases");
  const query = useQuery(host(name));
  return (
    <Page
      title={`Host ${name}`}
      heading={
        <Group gap="sm" component="span">
          <span className="break">{name}</span>
          {query.data && <Status state={query.data.state} />}
        </Group>
      }
    >
      <Loaded query={query}>
        {(detail) => (
          <>
            <About host={detail} />
            <Rejections host={detail} />
            <Tabs value={tab} onChange={(value) => setTab(value ?? "")} keepMounted={false}>
              <Tabs.List>
                <Tabs.Tab value="releases">Services ({detail.releases.length})</Tabs.Tab>
                <Tabs.Tab value="envoys">Envoys ({detail.clients})</Tabs.Tab>
                <Tabs.Tab value="served">What it serves</Tabs.Tab>
              </Tabs.List>
              <Tabs.Panel value="releases" pt="md">
                <Releases releases={detail.releases} />
              </Tabs.Panel>
              <Tabs.Panel value="envoys" pt="md">
                <Envoys host={detail} />
              </Tabs.Panel>
              <Tabs.Panel value="served" pt="md">
                <ServedConfig host={name} />
              </Tabs.Panel>
            </Tabs>
          </>
        )}
      </Loaded>
    </Page>
  );
}

function About({ host }: { host: Schemas["HostDetail"] }) {
  const labels = Object.entries(host.labels ?? {}).map(([key, value]) => `${key}=${value}`);
  return (
    <Paper>
      <Facts
        facts={[
          ["Beacon", host.connected ? "connected" : "not connected"],
          ["Last heard of", host.seen_unix_ms && <When key="" ms={host.seen_unix_ms} />],
          ["Zone", host.zone],
          ["Workloads", host.workloads?.join(", ")],
          [
            "Labels",
            labels.length > 0 && (
              <span key="" className="mono">
                {labels.join(" ")}
              </span>
            ),
          ],
          ["Beacon's version", host.build],
          ["Envoys", host.clients],
          ["Accepted", `${host.accepted} of ${host.accepted + host.lacking} services`],
        ]}
      />
    </Paper>
  );
}

/** What was refused comes first: it is why one looks. */
function Rejections({ host }: { host: Schemas["HostDetail"] }) {
  const refused = host.releases.filter(({ rejection }) => rejection);
  if (refused.length === 0) return null;
  return (
    <Alert color="red" title="Its Envoys refuse something" role="alert">
      {refused.map(({ service, rejection }) => (
        <Text key={service} size="sm" className="break">
          {service}: {rejection?.client} refused <span className="mono">{rejection?.resource}</span>. It keeps
          what it had. The error is below, beside the resource.
        </Text>
      ))}
    </Alert>
  );
}
