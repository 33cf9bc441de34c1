import { expect, test } from "vitest";
import { EventParser } from "../src/api/sse";
import { ActivityStream, type StreamState } from "../src/api/stream";

test("events are put together from any pieces", () => {
  const text =
    ': hi\n\nid: 7\nevent: entry\ndata: {"a":\ndata: 1}\n\nid: 8\r\nevent: entry\r\ndata: {}\r\n\r\n';
  const expected = [
    { id: "7", event: "entry", data: '{"a":\n1}' },
    { id: "8", event: "entry", data: "{}" },
  ];
  expect(new EventParser().push(text)).toEqual(expected);
  const byLetter = new EventParser();
  expect([...text].flatMap((letter) => byLetter.push(letter))).toEqual(expected);
});

function answer(...indexes: number[]): Response {
  const text = indexes.map((index) => `id: ${index}\nevent: entry\ndata: {"index":${index}}\n\n`).join("");
  return new Response(text, { status: 200 });
}

/** A stream that is given these answers, one for each connection, and pauses at the end. */
async function follow(answers: (() => Response | Promise<Response>)[]) {
  const asked: (string | null)[] = [];
  const entries: number[] = [];
  const states: StreamState["kind"][] = [];
  let signedOut = 0;
  await new Promise<void>((done) => {
    const stream = new ActivityStream({
      onEntry: ({ index }) => entries.push(index),
      onState: ({ kind }) => states.push(kind),
      onLive: () => undefined,
      onUnauthenticated: () => {
        signedOut += 1;
      },
      wait: async () => undefined,
      fetch: async (_, init) => {
        const next = answers.shift();
        if (!next) {
          stream.pause();
          done();
          return new Response(null, { status: 503 });
        }
        asked.push(new Headers(init?.headers).get("Last-Event-ID"));
        return next();
      },
    });
    stream.start();
  });
  return { asked, entries, states, signedOut };
}

test("a cut stream is resumed after the last entry, and nothing is told twice", async () => {
  const { asked, entries, states } = await follow([() => answer(4, 5), () => answer(5, 6)]);
  expect(asked).toEqual([null, "5"]);
  expect(entries).toEqual([4, 5, 6]);
  expect(states).toEqual(["connecting", "live", "cut", "live", "cut", "paused"]);
});

test("a Tower that is away is tried until it is back", async () => {
  const away = () => Promise.reject(new TypeError("fetch failed"));
  const { asked, entries } = await follow([() => answer(4), away, away, () => answer(5)]);
  expect(asked).toEqual([null, "4", "4", "4"]);
  expect(entries).toEqual([4, 5]);
});

test("a session that is over is told apart from a Tower that is away", async () => {
  const { signedOut } = await follow([
    () => new Response(null, { status: 401 }),
    () => new Response(null, { status: 503 }),
  ]);
  expect(signedOut).toBe(1);
});
