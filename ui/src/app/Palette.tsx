import { Modal } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { createSpotlight, Spotlight } from "@mantine/spotlight";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Boxes, Search, Server } from "lucide-react";
import { useEffect, useState } from "react";
import { useNavigate } from "react-router";
import { hosts, services } from "../api/queries";
import { places } from "./places";

const [store, actions] = createSpotlight();
const SHOWN = 7;

/** Enter goes to the first of what was found, unless another one was chosen with the arrows. */
const goToFirst = () => document.querySelector<HTMLElement>("[role=dialog] [data-action]")?.click();

export const openPalette = actions.open;

/** Goes anywhere by name: Tower searches its services and hosts. */
export function Palette() {
  const navigate = useNavigate();
  const [text, setText] = useState("");
  // Enter was pressed before what was searched for had come.
  const [hurried, setHurried] = useState(false);
  const [search] = useDebouncedValue(text.trim(), 150);
  const enabled = search.length > 0;
  const foundServices = useInfiniteQuery({ ...services({ search }), enabled, refetchInterval: false });
  const foundHosts = useInfiniteQuery({ ...hosts({ search }), enabled, refetchInterval: false });
  const named = places.filter(({ label }) => label.toLowerCase().includes(text.trim().toLowerCase()));
  const servicesHere = enabled ? (foundServices.data?.pages[0]?.services.slice(0, SHOWN) ?? []) : [];
  const hostsHere = enabled ? (foundHosts.data?.pages[0]?.hosts.slice(0, SHOWN) ?? []) : [];
  const settled = search === text.trim() && !(enabled && (foundServices.isFetching || foundHosts.isFetching));
  useEffect(() => {
    if (!hurried || !settled) return;
    setHurried(false);
    goToFirst();
  }, [hurried, settled]);
  const none = named.length + servicesHere.length + hostsHere.length === 0;
  return (
    <Spotlight.Root
      store={store}
      query={text}
      onQueryChange={setText}
      shortcut="mod + K"
      scrollable
      maxHeight={420}
    >
      <Modal.Title className="visually-hidden">Find a service, a host, a page</Modal.Title>
      <Spotlight.Search
        placeholder="A service, a host, a page …"
        aria-label="A service, a host, a page"
        onKeyDown={(event) => {
          if (event.key !== "Enter" || store.getState().selected >= 0) return;
          if (settled) goToFirst();
          else setHurried(true);
        }}
        leftSection={<Search size={16} aria-hidden />}
      />
      <Spotlight.ActionsList>
        {servicesHere.length > 0 && (
          <Spotlight.ActionsGroup label="Services">
            {servicesHere.map((service) => (
              <Spotlight.Action
                key={service.name}
                label={service.name}
                description={service.owner ? `owner ${service.owner}` : undefined}
                leftSection={<Boxes size={16} aria-hidden />}
                onClick={() => void navigate(`/services/${encodeURIComponent(service.name)}`)}
              />
            ))}
          </Spotlight.ActionsGroup>
        )}
        {hostsHere.length > 0 && (
          <Spotlight.ActionsGroup label="Hosts">
            {hostsHere.map((host) => (
              <Spotlight.Action
                key={host.name}
                label={host.name}
                description={host.zone}
                leftSection={<Server size={16} aria-hidden />}
                onClick={() => void navigate(`/hosts/${encodeURIComponent(host.name)}`)}
              />
            ))}
          </Spotlight.ActionsGroup>
        )}
        {named.length > 0 && (
          <Spotlight.ActionsGroup label="Pages">
            {named.map(({ to, label, Icon }) => (
              <Spotlight.Action
                key={to}
                label={label}
                leftSection={<Icon size={16} aria-hidden />}
                onClick={() => void navigate(to)}
              />
            ))}
          </Spotlight.ActionsGroup>
        )}
        {none && <Spotlight.Empty>Nothing has such a name.</Spotlight.Empty>}
      </Spotlight.ActionsList>
    </Spotlight.Root>
  );
}
