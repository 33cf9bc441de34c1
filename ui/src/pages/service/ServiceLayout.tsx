import { Badge, Group, Tabs } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Outlet, useLocation, useNavigate, useParams } from "react-router";
import { service } from "../../api/queries";
import type { ServiceDetail } from "../../api/types";
import { link } from "../../lib/links";
import { Act } from "../../parts/Act";
import { Facts } from "../../parts/Facts";
import { Loaded } from "../../parts/Loaded";
import { Page } from "../../parts/Page";
import { To } from "../../parts/To";
import { When } from "../../parts/When";
import { ActivationLine } from "./ActivationLine";
import { DraftBar } from "./DraftBar";
import { DraftProvider } from "./draft";
import { RollBackDialog } from "./RollBackDialog";

const OVERVIEW = "overview";

/** The overview is at the service's own address. */
const TABS = [
  { path: OVERVIEW, label: "Overview" },
  { path: "callers", label: "Callers" },
  { path: "inbound", label: "Inbound" },
  { path: "outbound", label: "Outbound" },
  { path: "traffic", label: "Traffic" },
  { path: "endpoints", label: "Endpoints" },
  { path: "versions", label: "Versions" },
];

/** What is around every tab of a service; it also keeps the draft while one goes from tab to tab. */
export function Component() {
  const { service: name = "" } = useParams();
  const query = useQuery(service(name));
  return (
    <Loaded query={query}>
      {(detail) => (
        <DraftProvider key={name} service={detail}>
          <Frame service={detail} />
        </DraftProvider>
      )}
    </Loaded>
  );
}

function Frame({ service }: { service: ServiceDetail }) {
  const { name, active } = service;
  const navigate = useNavigate();
  const { pathname } = useLocation();
  const [rollingBack, setRollingBack] = useState(false);
  const tab = decodeURIComponent(pathname).slice(`/services/${name}/`.length).split("/")[0] || OVERVIEW;
  const current = TABS.find(({ path }) => path === tab) ?? (tab === "diff" ? TABS.at(-1) : undefined);
  return (
    <Page
      title={current && current.path !== OVERVIEW ? `${name}: ${current.label}` : name}
      heading={<span className="break">{name}</span>}
      actions={
        <>
          <Act need={{ service: name }} to={link.service(name, "callers")} variant="default">
            Edit
          </Act>
          <Act
            need={{ service: name }}
            unless={!active && "Nothing is active that could be rolled back."}
            variant="default"
            onClick={() => setRollingBack(true)}
          >
            Roll back …
          </Act>
        </>
      }
    >
      <Facts
        facts={[
          ["Owner", service.owner ?? "nobody yet"],
          [
            "Active",
            active ? (
              <To key="" to={link.version(name, active.version)}>{`${name}@${active.version}`}</To>
            ) : (
              "no document"
            ),
          ],
          [
            "Uploaded last",
            service.latest_version && (
              <To
                key=""
                to={link.version(name, service.latest_version)}
              >{`${name}@${service.latest_version}`}</To>
            ),
          ],
          ["Endpoints", service.endpoints],
          ["Called as", service.domain ? `${service.domain}, ${name}.mesh` : undefined],
          ["No host name", service.refused],
          ["Hosts are sent it", service.served ? undefined : "no, see --serve"],
          ["Changed", service.changed_unix_ms && <When ms={service.changed_unix_ms} />],
        ]}
      />
      {service.activation_in_progress && <ActivationLine activation={service.activation_in_progress} />}
      <Tabs
        value={current?.path ?? null}
        onChange={(path) => void navigate(link.service(name, path === OVERVIEW ? "" : (path ?? "")))}
        activateTabWithKeyboard={false}
      >
        <Tabs.List>
          {TABS.map(({ path, label }) => (
            <Tabs.Tab key={path} value={path}>
              <Group gap={6} component="span" display="inline-flex">
                {label}
                {path === OVERVIEW && service.rules > 0 && <Badge size="sm">{service.rules} rules</Badge>}
              </Group>
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {current && (
          <Tabs.Panel value={current.path} pt="md">
            <DraftBar />
            <Outlet context={service} />
          </Tabs.Panel>
        )}
      </Tabs>
      {!current && (
        <>
          <DraftBar />
          <Outlet context={service} />
        </>
      )}
      <RollBackDialog service={service} opened={rollingBack} onClose={() => setRollingBack(false)} />
    </Page>
  );
}
