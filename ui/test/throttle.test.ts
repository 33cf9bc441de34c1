import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Throttle } from "../src/lib/throttle";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("what comes often is done at once, and then once in a while, also for the last time", () => {
  const throttle = new Throttle(1000);
  const done: string[] = [];
  const ask = (name: string) => throttle.run(name, () => done.push(name));
  ask("a");
  ask("a");
  ask("a");
  ask("b");
  expect(done).toEqual(["a", "b"]);
  vi.advanceTimersByTime(999);
  expect(done).toEqual(["a", "b"]);
  vi.advanceTimersByTime(1);
  expect(done).toEqual(["a", "b", "a"]);
  vi.advanceTimersByTime(5000);
  expect(done).toEqual(["a", "b", "a"]);
  ask("b");
  expect(done).toEqual(["a", "b", "a", "b"]);
});
