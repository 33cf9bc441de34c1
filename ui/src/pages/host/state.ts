import type { Schemas } from "../../api/types";

/** `type.googleapis.com/envoy.config.cluster.v3.Cluster` as people call it. */
const NAMES: Record<string, string> = {
  Listener: "Listeners",
  RouteConfiguration: "Routes",
  ScopedRouteConfiguration: "Scoped routes",
  VirtualHost: "Virtual hosts",
  Cluster: "Clusters",
  ClusterLoadAssignment: "Endpoints",
  Secret: "Secrets",
  Runtime: "Runtime",
  TypedExtensionConfig: "Extensions",
};

export function typeName(typeUrl: string): string {
  const last = typeUrl.split(".").at(-1) ?? typeUrl;
  return NAMES[last] ?? last;
}

/** The tab of what a host serves that has resources of a type. */
export function servedOf(typeUrl: string): Schemas["Served"] | undefined {
  const name = typeName(typeUrl).toLowerCase();
  const all: Schemas["Served"][] = ["listeners", "routes", "clusters", "endpoints", "secrets"];
  return name === "virtual hosts" ? "routes" : all.find((served) => served === name);
}
