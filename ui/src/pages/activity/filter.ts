import type { Entry } from "../../api/types";

/** What people, and Tower itself, do. */
export const commands = [
  "upload",
  "approve",
  "retire",
  "activate",
  "traffic",
  "roll-back",
  "deactivate",
  "abort",
  "step",
  "report",
  "end",
  "edit-part",
  "issue-token",
  "revoke-token",
  "record-hold",
  "release-hold",
  "adopt",
];

export const isByTower = (entry: Entry) => entry.credential === "tower";

/** Whether an entry of the stream is one that the list would have; as the server decides it. */
export function takes(filter: { service: string; author: string; command: string }, entry: Entry): boolean {
  return (
    (filter.service === "" || entry.events.some(({ service }) => service === filter.service)) &&
    (filter.author === "" || entry.author === filter.author) &&
    (filter.command === "" || entry.command === filter.command)
  );
}

/** Two lists, the newest first, as one without doubles. */
export function merge(live: Entry[], listed: Entry[]): Entry[] {
  const newest = listed[0]?.index ?? -1;
  return [...live.filter(({ index }) => index > newest), ...listed];
}
