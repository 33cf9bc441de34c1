import type { Entry } from "./types";

/** The keys of the queries whose answers are out of date after these entries of the log. */
export function staleKeys(entries: Entry[]): string[][] {
  const keys = new Map<string, string[]>();
  const add = (...key: string[]) => keys.set(key.join("\0"), key);
  for (const { events } of entries) {
    add("activity");
    for (const { kind, service, data } of events) {
      if (service) {
        add("service", service);
        add("services");
      }
      const activation = (data as { activation?: unknown } | null)?.activation;
      if (typeof activation === "string") add("activation", activation);
      if (kind === "part_edited") add("part");
      if (kind.startsWith("hold") || kind.startsWith("source")) add("sources");
      if (kind.startsWith("activation")) {
        add("hosts");
        add("fleet");
      }
    }
  }
  return [...keys.values()];
}
