import { EventParser } from "./sse";
import type { Entry } from "./types";

/** Tower says something at least every 10 s; after so much silence the connection is taken for dead. */
const SILENCE_MS = 25_000;
const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 15_000;

export type StreamState =
  | { kind: "connecting"; sinceMs: number }
  | { kind: "live"; sinceMs: number }
  | { kind: "cut"; sinceMs: number; why: string }
  | { kind: "paused"; sinceMs: number };

interface Options {
  onEntry: (entry: Entry) => void;
  onState: (state: StreamState) => void;
  /** The session is over. */
  onUnauthenticated: () => void;
  /** After a gap that was resumed, or on the first connection. */
  onLive: () => void;
  fetch?: typeof fetch;
  wait?: (ms: number, signal: AbortSignal) => Promise<void>;
}

/**
 * The activity log as it grows. It is read with `fetch` and not with `EventSource`, which cannot see Tower's
 * heartbeats, and so does not notice a connection that is dead without having been closed; nor does it tell
 * a session that is over from a Tower that restarts. It resumes after the last entry that it has seen.
 */
export class ActivityStream {
  private last: number | undefined;
  private abort: AbortController | undefined;
  private readonly fetch: typeof fetch;
  private readonly wait: (ms: number, signal: AbortSignal) => Promise<void>;

  constructor(private readonly options: Options) {
    this.fetch = options.fetch ?? ((...request) => fetch(...request));
    this.wait = options.wait ?? sleep;
  }

  /** The index of the last entry that was received. */
  get lastIndex() {
    return this.last;
  }

  start() {
    if (this.abort) return;
    const abort = new AbortController();
    this.abort = abort;
    void this.run(abort.signal);
  }

  /** Lets go of the connection; `start` resumes. */
  pause() {
    this.abort?.abort();
    this.abort = undefined;
    this.options.onState({ kind: "paused", sinceMs: Date.now() });
  }

  retryNow() {
    this.abort?.abort();
    this.abort = undefined;
    this.start();
  }

  private async run(stopped: AbortSignal) {
    let waitMs = FIRST_WAIT_MS;
    let cutSince: number | undefined;
    if (!stopped.aborted) this.options.onState({ kind: "connecting", sinceMs: Date.now() });
    while (!stopped.aborted) {
      let why: string;
      try {
        why = await this.read(stopped, () => {
          waitMs = FIRST_WAIT_MS;
          cutSince = undefined;
        });
      } catch (error) {
        // Browsers tell in words of their own that nobody answers.
        why = error instanceof TypeError ? "Tower cannot be reached" : String(error);
      }
      if (stopped.aborted) return;
      cutSince ??= Date.now();
      this.options.onState({ kind: "cut", sinceMs: cutSince, why });
      await this.wait(waitMs, stopped);
      waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS);
    }
  }

  /** Reads one connection to its end, and says why it ended. */
  private async read(stopped: AbortSignal, connected: () => void): Promise<string> {
    const silence = new AbortController();
    let timer = setTimeout(() => silence.abort(), SILENCE_MS);
    const headers: Record<string, string> = { Accept: "text/event-stream" };
    if (this.last !== undefined) headers["Last-Event-ID"] = String(this.last);
    try {
      const response = await this.fetch("/api/v1/activity/stream", {
        headers,
        signal: AbortSignal.any([stopped, silence.signal]),
      });
      if (response.status === 401) {
        this.options.onUnauthenticated();
        return "the session is over";
      }
      if (!response.ok || !response.body) return `Tower answered with status ${response.status}`;
      connected();
      this.options.onState({ kind: "live", sinceMs: Date.now() });
      this.options.onLive();
      const parser = new EventParser();
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return "Tower ended the connection";
        clearTimeout(timer);
        timer = setTimeout(() => silence.abort(), SILENCE_MS);
        for (const event of parser.push(value)) this.take(event.event, event.data);
      }
    } catch (error) {
      if (silence.signal.aborted) return `nothing was heard for ${SILENCE_MS / 1000} s`;
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  private take(event: string, data: string) {
    if (event !== "entry") return;
    const entry = JSON.parse(data) as Entry;
    // What was seen before the connection was cut is not seen twice.
    if (this.last !== undefined && entry.index <= this.last) return;
    this.last = entry.index;
    this.options.onEntry(entry);
  }
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
