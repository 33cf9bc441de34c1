import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { ServiceDetail } from "../src/api/types";
import { ownerOf, type RawSchema, schemaAt, shapeOf } from "../src/lib/schema";
import { flatten, toPath } from "../src/pages/service/effective";
import { splitRoutes } from "../src/pages/service/split";

const all = JSON.parse(
  readFileSync(`${import.meta.dirname}/../../docs/schema/mesh-service.json`, "utf8"),
) as RawSchema;

test("every field of the real schema has a shape", () => {
  const seen = new Set<string>();
  const walk = (raw: RawSchema, path: string) => {
    const shape = shapeOf(all, raw);
    seen.add(shape.kind);
    expect(shape.kind !== "any" || path.endsWith(".merge"), path).toBe(true);
    if (path.split(".").length > 12) return;
    for (const [name, field] of Object.entries(shape.fields)) walk(field, `${path}.${name}`);
    if (shape.item) walk(shape.item, `${path}.*`);
  };
  walk(all, "");
  expect([...seen].sort()).toEqual([
    "any",
    "boolean",
    "choice",
    "integer",
    "list",
    "map",
    "number",
    "object",
    "string",
  ]);
});

test("a path leads through lists and maps to a field, with its help", () => {
  const request = schemaAt(all, ["spec", "callers", "routes", 0, "timeouts", "request"]);
  expect(request && shapeOf(all, request)).toMatchObject({
    kind: "string",
    pattern: expect.stringContaining("ms"),
  });
  expect(schemaAt(all, ["spec", "callers", "subsets", "any", "label"])).toBeDefined();
  expect(schemaAt(all, ["spec", "callers", "nothing"])).toBeUndefined();
  const type = schemaAt(all, ["spec", "callers", "loadBalancer", "type"]);
  expect(type && shapeOf(all, type).choices.map(({ value }) => value)).toContain("LeastRequest");
});

test("a field that the service may not write belongs to whoever may", () => {
  const none: RawSchema = { type: "object", properties: {} };
  const tls: RawSchema = { type: "object", properties: { tls: { type: "string" } } };
  const schemas = { all: tls, service: none, platform: none, security: tls };
  expect(ownerOf(schemas, ["tls"])).toBe("security");
  expect(ownerOf({ ...schemas, service: tls }, ["tls"])).toBe("service");
});

test("what takes effect is told field by field, with its origin", () => {
  const origin = { owner: "platform", part: "platform" };
  const fields = flatten({
    document: { spec: { callers: { circuitBreaker: { maxRequests: 5 }, routes: [{ name: "a" }] } } },
    provenance: { "spec.callers.circuitBreaker.maxRequests": origin, "spec.callers.routes": origin },
  });
  expect(fields).toEqual([
    { field: "callers.circuitBreaker.maxRequests", value: "5", origin },
    { field: "callers.routes", value: "- name: a", origin },
  ]);
  expect(toPath("spec.routes[2].a")).toEqual(["spec", "routes", 2, "a"]);
});

test("traffic can be shifted on routes to subsets, also to those that have none of it yet", () => {
  const effective = {
    document: {
      spec: {
        callers: {
          subsets: { stable: {}, canary: {}, dev: {} },
          routes: [
            { name: "split", backendRefs: [{ subset: "stable" }, { subset: "canary", weight: 0 }] },
            { name: "redirect", redirect: {} },
          ],
        },
      },
    },
    provenance: {},
  };
  expect(splitRoutes({ effective } as unknown as ServiceDetail)).toEqual([
    { name: "split", weights: { stable: 1, canary: 0, dev: 0 } },
  ]);
});
