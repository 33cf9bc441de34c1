import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, ok } from "./client";
import { refusal } from "./problem";
import type { Activation, Schemas, ServiceFilter } from "./types";

/** How often what does not come with the activity stream is asked for again. */
const SOON_MS = 2_000;
const NOW_AND_THEN_MS = 10_000;

const PAGE = 200;

/** Whoever has scrolled far looks for something: so much is not asked for again and again. */
const FEW_PAGES = 3;

const whileShort = (query: { state: { data?: { pages: unknown[] } } }) =>
  (query.state.data?.pages.length ?? 0) <= FEW_PAGES && NOW_AND_THEN_MS;

export interface ServicesFilter {
  search?: string;
  sort?: "name" | "endpoints" | "changed";
  filter?: ServiceFilter;
  owner?: string;
}

export interface ActivityFilter {
  service?: string;
  author?: string;
  command?: string;
  before?: number;
}

export const services = (filter: ServicesFilter) =>
  infiniteQueryOptions({
    queryKey: ["services", filter],
    queryFn: ({ pageParam, signal }) =>
      ok(
        api.GET("/api/v1/services", {
          params: { query: { ...filter, cursor: pageParam, limit: PAGE } },
          signal,
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next ?? undefined,
    placeholderData: keepPreviousData,
    refetchInterval: whileShort,
  });

export const service = (name: string) =>
  queryOptions({
    queryKey: ["service", name, "detail"],
    queryFn: ({ signal }) =>
      ok(
        api.GET("/api/v1/services/{service}", {
          params: { path: { service: name }, query: { include: "effective" } },
          signal,
        }),
      ),
    refetchInterval: (query) => (query.state.data?.activation ? SOON_MS : NOW_AND_THEN_MS),
  });

export const endpoints = (name: string) =>
  queryOptions({
    queryKey: ["service", name, "endpoints"],
    queryFn: ({ signal }) =>
      ok(api.GET("/api/v1/services/{service}/endpoints", { params: { path: { service: name } }, signal })),
    refetchInterval: NOW_AND_THEN_MS,
  });

export const versions = (name: string) =>
  infiniteQueryOptions({
    queryKey: ["service", name, "versions"],
    queryFn: ({ pageParam, signal }) =>
      ok(
        api.GET("/api/v1/services/{service}/versions", {
          params: { path: { service: name }, query: { cursor: pageParam, limit: PAGE } },
          signal,
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next ?? undefined,
  });

/** The document of a version, as it was uploaded; if that is JSON, as YAML. Versions do not change. */
export const document = (name: string, number: number) =>
  queryOptions({
    queryKey: ["document", name, number],
    queryFn: async ({ signal }) =>
      readable(await yaml(`/api/v1/services/${encodeURIComponent(name)}/versions/${number}`, signal)),
    staleTime: Number.POSITIVE_INFINITY,
  });

export const diff = (name: string, from: number, to: number) =>
  queryOptions({
    queryKey: ["diff", name, from, to],
    queryFn: ({ signal }) =>
      ok(
        api.GET("/api/v1/services/{service}/diff", {
          params: { path: { service: name }, query: { from, to } },
          signal,
        }),
      ),
    staleTime: Number.POSITIVE_INFINITY,
  });

export type PlanQuestion =
  | { version: number; document?: undefined; audience?: string }
  | { document: string; version?: undefined; audience?: string };

/** What a change would do. Asked anew whenever something happens to the service. */
export const plan = (name: string, question: PlanQuestion) =>
  queryOptions({
    queryKey: ["service", name, "plan", question],
    queryFn: ({ signal }) => askPlan(name, question, signal),
    placeholderData: keepPreviousData,
    gcTime: 60_000,
  });

export const askPlan = (name: string, question: PlanQuestion, signal?: AbortSignal) =>
  ok(
    api.POST("/api/v1/services/{service}/plan", {
      params: { path: { service: name } },
      body: { file: `${name}.yaml`, ...question },
      signal,
    }),
  );

export const activations = (name: string) =>
  infiniteQueryOptions({
    queryKey: ["service", name, "activations"],
    queryFn: ({ pageParam, signal }) =>
      ok(
        api.GET("/api/v1/services/{service}/activations", {
          params: { path: { service: name }, query: { cursor: pageParam, limit: PAGE } },
          signal,
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next ?? undefined,
  });

export const isFinal = (activation: Activation) => activation.state !== "progressing";

export const activation = (id: string) =>
  queryOptions({
    queryKey: ["activation", id],
    queryFn: ({ signal }) => ok(api.GET("/api/v1/activations/{id}", { params: { path: { id } }, signal })),
    refetchInterval: (query) =>
      query.state.data && isFinal(query.state.data) ? NOW_AND_THEN_MS : SOON_MS / 2,
  });

export const lacking = (release: string) =>
  infiniteQueryOptions({
    queryKey: ["lacking", release],
    queryFn: ({ pageParam, signal }) =>
      ok(
        api.GET("/api/v1/releases/{release}/lacking", {
          params: { path: { release }, query: { cursor: pageParam, limit: PAGE } },
          signal,
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next ?? undefined,
    refetchInterval: SOON_MS,
  });

export interface HostsFilter {
  search?: string;
  state?: Schemas["HostState"];
  zone?: string;
  workload?: string;
  /** `KEY=VALUE`. */
  label?: string;
}

/** How many hosts are how, by what they have in common. */
export const fleet = queryOptions({
  queryKey: ["fleet"],
  queryFn: ({ signal }) => ok(api.GET("/api/v1/fleet", { signal })),
  refetchInterval: SOON_MS * 2,
});

/** How long probes took until they were applied. */
export const latency = queryOptions({
  queryKey: ["latency"],
  queryFn: ({ signal }) => ok(api.GET("/api/v1/latency", { signal })),
  refetchInterval: NOW_AND_THEN_MS,
});

export const hosts = (filter: HostsFilter) =>
  infiniteQueryOptions({
    queryKey: ["hosts", filter],
    queryFn: ({ pageParam, signal }) =>
      ok(
        api.GET("/api/v1/hosts", {
          params: { query: { ...filter, cursor: pageParam, limit: PAGE } },
          signal,
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next ?? undefined,
    placeholderData: keepPreviousData,
    refetchInterval: whileShort,
  });

export const host = (name: string) =>
  queryOptions({
    queryKey: ["host", name, "detail"],
    queryFn: ({ signal }) =>
      ok(api.GET("/api/v1/hosts/{host}", { params: { path: { host: name } }, signal })),
    refetchInterval: SOON_MS,
  });

/** What a host serves by type and name, without the contents, of which there is much. */
export const hostIndex = (name: string) =>
  queryOptions({
    queryKey: ["host", name, "index"],
    queryFn: ({ signal }) =>
      ok(
        api.GET("/api/v1/hosts/{host}/config", {
          params: { path: { host: name }, query: { index: true } },
          signal,
        }),
      ),
    placeholderData: keepPreviousData,
  });

/** A resource that a host serves; with a release, as it would be if the host had that. */
export const hostConfig = (name: string, search: string, what?: Schemas["Served"], release?: string) =>
  queryOptions({
    queryKey: ["host", name, "config", what ?? "all", search, release ?? ""],
    queryFn: ({ signal }) =>
      ok(
        api.GET("/api/v1/hosts/{host}/config", {
          params: { path: { host: name }, query: { what, search, release } },
          signal,
        }),
      ),
  });

export const activity = (filter: ActivityFilter) =>
  infiniteQueryOptions({
    queryKey: ["activity", filter],
    queryFn: ({ pageParam, signal }) =>
      ok(
        api.GET("/api/v1/activity", {
          params: { query: { ...filter, cursor: pageParam, limit: PAGE } },
          signal,
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next ?? undefined,
    placeholderData: keepPreviousData,
  });

export const entry = (index: number) =>
  queryOptions({
    queryKey: ["entry", index],
    queryFn: ({ signal }) => ok(api.GET("/api/v1/activity/{index}", { params: { path: { index } }, signal })),
    staleTime: Number.POSITIVE_INFINITY,
  });

export const sources = queryOptions({
  queryKey: ["sources"],
  queryFn: ({ signal }) => ok(api.GET("/api/v1/sources", { signal })),
  refetchInterval: SOON_MS * 2,
});

export const log = queryOptions({
  queryKey: ["log"],
  queryFn: ({ signal }) => ok(api.GET("/api/v1/log", { signal })),
  refetchInterval: NOW_AND_THEN_MS,
});

/** A part of platform or security: for one service, or for all; null if there is none. */
export const part = (owner: "platform" | "security", name?: string) =>
  queryOptions({
    queryKey: ["part", owner, name ?? ""],
    queryFn: async ({ signal }) => {
      const asked = name
        ? await api.GET(`/api/v1/${owner}/{service}`, { params: { path: { service: name } }, signal })
        : await api.GET(`/api/v1/${owner}`, { signal });
      return asked.response.status === 404 ? null : ok(Promise.resolve(asked));
    },
  });

/** The JSON Schema of documents: all of it, or what one owner may write. */
export const documentSchema = (owner?: "platform" | "security" | "service") =>
  queryOptions({
    queryKey: ["schema", owner ?? "all"],
    queryFn: ({ signal }) =>
      ok(api.GET("/api/v1/schema/service.json", { params: { query: { owner } }, parseAs: "json", signal })),
    staleTime: Number.POSITIVE_INFINITY,
  });

/** Programs send documents as JSON on one line, which nobody can read or edit. */
async function readable(text: string): Promise<string> {
  if (!text.trimStart().startsWith("{")) return text;
  try {
    const value: unknown = JSON.parse(text);
    const { stringify } = await import("yaml");
    return stringify(value, { lineWidth: 0 });
  } catch {
    // It is YAML that begins so.
    return text;
  }
}

async function yaml(path: string, signal: AbortSignal): Promise<string> {
  const response = await fetch(path, { headers: { Accept: "application/yaml" }, signal });
  if (!response.ok) throw refusal(response.status, await response.json().catch(() => undefined));
  return response.text();
}
