import type { ServiceDetail } from "../../api/types";
import { get, type Json } from "../../lib/document";

/** A route of callers to subsets, with the weight of each. */
export interface SplitRoute {
  name: string;
  weights: Record<string, number>;
}

/** The active routes whose traffic can be shifted: those to two subsets or more of those that there are. */
export function splitRoutes(service: ServiceDetail): SplitRoute[] {
  const document = service.effective?.document as Json | undefined;
  const subsets = Object.keys(object(get(document, ["spec", "callers", "subsets"])));
  const routes = get(document, ["spec", "callers", "routes"]);
  if (!Array.isArray(routes) || subsets.length < 2) return [];
  return routes.flatMap((route) => {
    const refs = get(route, ["backendRefs"]);
    if (!Array.isArray(refs)) return [];
    const weights: Record<string, number> = Object.fromEntries(subsets.map((subset) => [subset, 0]));
    let named = 0;
    for (const ref of refs) {
      const subset = get(ref, ["subset"]);
      if (typeof subset !== "string") continue;
      named += 1;
      weights[subset] = Number(get(ref, ["weight"]) ?? 1);
    }
    return named > 0 ? [{ name: String(get(route, ["name"]) ?? ""), weights }] : [];
  });
}

function object(value: Json | undefined): Record<string, Json> {
  return value && typeof value === "object" && !Array.isArray(value) ? value : {};
}
