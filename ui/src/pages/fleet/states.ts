import type { Schemas } from "../../api/types";

export type HostState = Schemas["HostState"];

/** The states of hosts, the ones that one looks for first. */
export const STATES: { state: HostState; label: string; color: string }[] = [
  { state: "rejected", label: "Rejected", color: "red" },
  { state: "lagging", label: "Lagging", color: "yellow" },
  { state: "silent", label: "Silent", color: "violet" },
  { state: "no_envoy", label: "No Envoy", color: "gray" },
  { state: "on_target", label: "On target", color: "teal" },
];

/** How hosts can be put together: by zone, by what runs on them, or by a label. */
export type By = "zone" | "workload" | `label:${string}`;

export function groupsOf(fleet: Schemas["Fleet"], by: string): Schemas["HostGroups"] {
  const none = { groups: [], left_out: 0 };
  if (by === "zone") return fleet.zones;
  if (by === "workload") return fleet.workloads;
  return fleet.labels[by.slice("label:".length)] ?? none;
}

/** The address of the hosts of a group. */
export function groupQuery(by: string, name: string, state?: HostState): string {
  const query = new URLSearchParams();
  if (by.startsWith("label:")) query.set("label", `${by.slice("label:".length)}=${name}`);
  else query.set(by, name);
  if (state) query.set("state", state);
  return `/?${query}`;
}
