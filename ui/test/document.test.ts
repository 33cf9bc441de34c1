import { expect, test } from "vitest";
import {
  get,
  moveItem,
  pathName,
  read,
  removeField,
  renameKey,
  setField,
  template,
} from "../src/lib/document";

const TEXT = `# How others call "hello".
apiVersion: tower.mesh/v1
kind: MeshService
metadata: {name: hello, owner: demo}   # ours
spec:
  callers:
    subsets:
      stable: {release: stable}
      canary: {release: canary}
    # Reviewed in May.
    outlierDetection: {consecutiveLocalFailures: 3}
    routes:
    - name: default
      backendRefs:
      - {subset: stable, weight: 100} # most
      - {subset: canary, weight: 0}
      timeouts: {request: 2s, backendRequest: 500ms}
      retry: {attempts: 1, retryOn: [connect-failure, "503"], budgetPercent: 20}
`;

const ROUTE = ["spec", "callers", "routes", 0];

test("a scalar is replaced, and nothing else changes by a byte", () => {
  const after = setField(TEXT, [...ROUTE, "timeouts", "request"], "250ms");
  expect(after).toBe(TEXT.replace("request: 2s", "request: 250ms"));
  expect(setField(TEXT, [...ROUTE, "backendRefs", 0, "weight"], 95)).toBe(TEXT.replace("100", "95"));
});

test("a string that YAML would read as something else is quoted, and quotes stay", () => {
  const retryOn = [...ROUTE, "retry", "retryOn"];
  expect(setField(TEXT, [...retryOn, 1], "504")).toContain('"504"');
  expect(read(setField(TEXT, [...retryOn, 0], "504")).value).toMatchObject({
    spec: { callers: { routes: [{ retry: { retryOn: ["504", "503"] } }] } },
  });
  const hostile = "a, b}: # no";
  const after = setField(TEXT, ["metadata", "owner"], hostile);
  expect(get(read(after).value, ["metadata", "owner"])).toBe(hostile);
  expect(get(read(after).value, ["metadata", "name"])).toBe("hello");
});

test("a new field keeps comments and order, and lists as they were indented", () => {
  const after = setField(TEXT, ["spec", "callers", "rateLimits", "local"], { requests: 5, interval: "1s" });
  expect(after).toContain('# How others call "hello".');
  expect(after).toContain("# ours");
  expect(after).toContain("# Reviewed in May.\n    outlierDetection: {consecutiveLocalFailures: 3}");
  expect(after).toContain("    routes:\n    - name: default");
  expect(after).toContain("weight: 100} # most");
  expect(Object.keys(get(read(after).value, ["spec", "callers"]) as object)).toEqual([
    "subsets",
    "outlierDetection",
    "routes",
    "rateLimits",
  ]);
});

test("a field can be set where nothing is yet", () => {
  expect(get(read(setField("spec:\n", ["spec", "callers", "protocol"], "grpc")).value, ["spec"])).toEqual({
    callers: { protocol: "grpc" },
  });
});

test("what is empty without a removed field goes with it, but spec stays", () => {
  const path = ["spec", "callers", "outlierDetection", "consecutiveLocalFailures"];
  const after = read(removeField(TEXT, path)).value;
  expect(get(after, ["spec", "callers", "outlierDetection"])).toBeUndefined();
  expect(get(after, ["spec", "callers", "routes", 0, "name"])).toBe("default");
  expect(
    read(removeField("spec:\n  callers:\n    protocol: grpc\n", ["spec", "callers", "protocol"])).value,
  ).toEqual({
    spec: {},
  });
});

test("elements move, and keys get other names, where they are", () => {
  const moved = read(moveItem(TEXT, [...ROUTE, "backendRefs"], 1, 0)).value;
  expect(get(moved, [...ROUTE, "backendRefs", 0, "subset"])).toBe("canary");
  expect(moveItem(TEXT, [...ROUTE, "backendRefs"], 1, 2)).toBe(TEXT);
  const renamed = read(renameKey(TEXT, ["spec", "callers", "subsets", "stable"], "main")).value;
  expect(Object.keys(get(renamed, ["spec", "callers", "subsets"]) as object)).toEqual(["main", "canary"]);
  expect(renameKey(TEXT, ["spec", "callers", "subsets", "stable"], "canary")).toBe(TEXT);
});

test("a text that cannot be read says where", () => {
  expect(read("a: 1\nb: [1\nc: 2\n").error?.line).toBeGreaterThan(1);
  expect(read(template("web", "ads")).value).toMatchObject({
    metadata: { name: "web", owner: "ads" },
    spec: {},
  });
});

test("paths are written as findings write them", () => {
  expect(pathName(["spec", "callers", "routes", 0, "name"])).toBe("spec.callers.routes[0].name");
});
