import type { Schemas } from "../../api/types";

type Resource = Schemas["Resource"];

/** Names of resources that another one points at, in the order of the chain. */
const NEXT: Partial<Record<Schemas["Served"], Schemas["Served"]>> = {
  listeners: "routes",
  routes: "clusters",
  clusters: "endpoints",
};

/** A search as a regular expression; undefined for no search, null for one that is none. */
export function pattern(search: string): RegExp | undefined | null {
  if (search === "") return undefined;
  try {
    return new RegExp(search, "i");
  } catch {
    return null;
  }
}

/** What comes after a resource: a listener's routes, a route's clusters, a cluster's endpoints. */
export function leadsTo(what: Schemas["Served"], content: unknown, all: Resource[]): Resource[] {
  const next = NEXT[what];
  if (!next) return [];
  const named = new Set<string>();
  collect(content, named);
  return all.filter((other) => other.what === next && named.has(other.name));
}

function collect(value: unknown, into: Set<string>) {
  if (typeof value === "string") into.add(value);
  else if (Array.isArray(value)) for (const item of value) collect(item, into);
  else if (value && typeof value === "object") for (const item of Object.values(value)) collect(item, into);
}
