import { expect, test } from "vitest";
import { difference } from "../src/editor/difference";
import { cursorAt } from "../src/lib/cursor";

/** The place is where the bar is. */
const at = (text: string) => cursorAt(text.replace("|", ""), text.indexOf("|"));

test.each([
  ["|", [], "key"],
  ["spec:\n  |", ["spec"], "key"],
  ["spec:\n  callers:\n    protocol: |", ["spec", "callers", "protocol"], "value"],
  ["spec:\n  inbound:\n    tls: {}\n  callers:\n    # why\n\n    |", ["spec", "callers"], "key"],
  ["spec:\n  callers:\n    routes:\n    - |", ["spec", "callers", "routes", 0], "key"],
  [
    "spec:\n  callers:\n    routes:\n    - name: a\n      timeouts:\n        |",
    ["spec", "callers", "routes", 0, "timeouts"],
    "key",
  ],
  [
    "spec:\n  callers:\n    routes:\n    - name: a\n    - name: b\n      |",
    ["spec", "callers", "routes", 0],
    "key",
  ],
  ["a:\n  b:\n    - c: 1\n      d:\n        - e: |", ["a", "b", 0, "d", 0, "e"], "value"],
  ["spec:\n  callers:\n    locality: {|", ["spec", "callers", "locality"], "key"],
  ["spec:\n  callers:\n    locality: {mode: |", ["spec", "callers", "locality", "mode"], "value"],
  ["spec:\n  callers:\n    locality: {mode: Off, |", ["spec", "callers", "locality"], "key"],
  ["a:\n  b:\n  - {c: [x, {d: 1, |", ["a", "b", 0, "c", 0], "key"],
])("%j", (text, path, kind) => expect(at(text)).toEqual({ path, kind }));

test("the difference of two texts is the smallest piece", () => {
  expect(difference("abc", "abc")).toBeUndefined();
  expect(difference("a: 1\nb: 2\n", "a: 1\nb: 3\n")).toEqual({ from: 8, to: 9, insert: "3" });
  expect(difference("aa", "aaa")).toEqual({ from: 2, to: 2, insert: "a" });
});
