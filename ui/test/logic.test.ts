import { describe, expect, test } from "vitest";
import { staleKeys } from "../src/api/invalidation";
import type { Entry, WhoAmI } from "../src/api/types";
import { parseTtl } from "../src/lib/duration";
import { millis } from "../src/lib/millis";
import { allowed } from "../src/lib/permissions";
import { absolute, relative, span } from "../src/lib/time";
import { percentages, rash, shift } from "../src/lib/weights";

describe("times to live", () => {
  test.each([
    ["45s", 45],
    ["2h", 7200],
    ["1h30m", 5400],
    [" 3d ", 259_200],
    ["", undefined],
  ])("%j is %s seconds", (text, seconds) => expect(parseTtl(text)).toEqual({ seconds }));

  test.each(["2", "2 h", "h", "1.5h", "-1h", "0s", "366d", "99999999999s"])("%j is refused", (text) =>
    expect(parseTtl(text).error).toBeTruthy(),
  );
});

describe("times", () => {
  const noon = Date.UTC(2026, 10, 30, 12, 0, 0);

  test("are told in one unit, before and after", () => {
    expect(relative(noon - 2000, noon)).toBe("now");
    expect(relative(noon - 61_000, noon)).toBe("1m ago");
    expect(relative(noon + 7_200_000, noon)).toBe("in 2h");
  });

  test("are told exactly in UTC", () => expect(absolute(noon, true)).toBe("2026-11-30 12:00:00 UTC"));

  test("spans have two units", () => {
    expect(span(45_900)).toBe("45s");
    expect(span(185_000)).toBe("3m 5s");
    expect(span(7_200_000)).toBe("2h");
  });
});

describe("permissions", () => {
  const who = (roles: WhoAmI["roles"], services: string[] = []): WhoAmI => ({
    name: "sam",
    credential: "1",
    roles,
    services,
    address: "",
    tower: "",
  });

  test("admins may everything, nobody may nothing", () => {
    expect(allowed(who(["admin"]), "security").may).toBe(true);
    expect(allowed(null, "platform").may).toBe(false);
  });

  test("owners may change what they own, and nothing else", () => {
    const owner = who(["owner"], ["web"]);
    expect(allowed(owner, { service: "web" }).may).toBe(true);
    const refused = allowed(owner, { service: "ads" });
    expect(refused).toMatchObject({
      may: false,
      why: "Only owners of ads may do this: ask them, or an admin. You are owner.",
    });
  });

  test("a service in a token without the role owner gives nothing", () =>
    expect(allowed(who(["viewer"], ["web"]), { service: "web" }).may).toBe(false));

  test("others may where an action says so", () => {
    expect(allowed(who(["security"]), { service: "web", orElse: ["security"] }).may).toBe(true);
    expect(allowed(who(["security"]), { service: "web", orElse: ["platform"] }).may).toBe(false);
  });
});

describe("weights", () => {
  const sum = (shares: Record<string, number>) => Object.values(shares).reduce((a, b) => a + b, 0);

  test("become whole percentages of 100", () => {
    expect(percentages({ a: 1, b: 1, c: 1 })).toEqual({ a: 34, b: 33, c: 33 });
    expect(percentages({ a: 95, b: 5 })).toEqual({ a: 95, b: 5 });
    expect(percentages({ a: 0, b: 0 })).toEqual({ a: 0, b: 0 });
  });

  test("one is shifted, the others keep their proportions", () => {
    expect(shift({ stable: 90, canary: 10 }, "canary", 25)).toEqual({ stable: 75, canary: 25 });
    expect(shift({ a: 60, b: 30, c: 10 }, "c", 40)).toEqual({ a: 40, b: 20, c: 40 });
    expect(shift({ a: 100, b: 0, c: 0 }, "a", 50)).toEqual({ a: 50, b: 25, c: 25 });
    expect(shift({ a: 100 }, "a", 3)).toEqual({ a: 100 });
  });

  test("always sum to 100", () => {
    for (let percent = 0; percent <= 100; percent += 1) {
      expect(sum(shift({ a: 33, b: 33, c: 34 }, "b", percent))).toBe(100);
    }
  });

  test("large steps are remarked upon", () => {
    expect(rash({ a: 90, b: 10 }, { a: 0, b: 100 })).toHaveLength(2);
    expect(rash({ a: 90, b: 10 }, { a: 80, b: 20 })).toEqual([]);
  });
});

test("an entry makes stale what it is about, and nothing else", () => {
  const entry = {
    index: 7,
    events: [{ kind: "activation_ended", service: "web", summary: "", data: { activation: "web-3" } }],
  } as unknown as Entry;
  expect(staleKeys([entry, entry])).toEqual([
    ["activity"],
    ["service", "web"],
    ["services"],
    ["activation", "web-3"],
    ["hosts"],
    ["fleet"],
  ]);
});

test("short times are said with as many digits as matter", () => {
  expect([0, 0.44, 9.96, 17.87, 999.4, 1000, 8120.29].map(millis)).toEqual([
    "0 ms",
    "0.4 ms",
    "10 ms",
    "18 ms",
    "999 ms",
    "1 s",
    "8.1 s",
  ]);
});
