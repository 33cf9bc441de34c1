import { useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useMemo, useRef, useState } from "react";
import { announce } from "../lib/announce";
import { Throttle } from "../lib/throttle";
import { staleKeys } from "./invalidation";
import { ActivityStream, type StreamState } from "./stream";
import type { Entry } from "./types";

/** Entries that are kept for pages that show them as they come. */
const KEPT = 500;
/** Entries come in bursts; what they make stale is asked for once. */
const GATHER_MS = 300;
/** Lists are long: while much happens they are asked for again no more often than this. */
const LISTS_MS = 5000;

interface Live {
  state: StreamState;
  /** What came since the page was loaded, the newest first. */
  entries: Entry[];
  paused: boolean;
  setPaused: (paused: boolean) => void;
  retryNow: () => void;
}

const Context = createContext<Live | undefined>(undefined);

export function useLive(): Live {
  const live = useContext(Context);
  if (!live) throw new Error("outside of LiveProvider");
  return live;
}

/** Follows the activity log, and asks again for what its entries are about. */
export function LiveProvider({ children }: { children: ReactNode }) {
  const client = useQueryClient();
  const [state, setState] = useState<StreamState>({ kind: "connecting", sinceMs: Date.now() });
  const [entries, setEntries] = useState<Entry[]>([]);
  const [paused, setPaused] = useState(false);
  const gathered = useRef<Entry[]>([]);
  const stream = useMemo(() => {
    const lists = new Throttle(LISTS_MS);
    const invalidate = (queryKey: string[]) => {
      const act = () => void client.invalidateQueries({ queryKey });
      if (queryKey.length === 1) lists.run(queryKey.join(), act);
      else act();
    };
    const flush = () => {
      const fresh = gathered.current.reverse();
      gathered.current = [];
      setEntries((known) => [...fresh, ...known].slice(0, KEPT));
      for (const queryKey of staleKeys(fresh)) invalidate(queryKey);
      for (const entry of fresh.slice(0, 3).reverse()) tell(entry);
    };
    return new ActivityStream({
      onEntry: (entry) => {
        if (gathered.current.length === 0) setTimeout(flush, GATHER_MS);
        gathered.current.push(entry);
      },
      onState: setState,
      onLive: () => void client.invalidateQueries(),
      onUnauthenticated: () => void client.invalidateQueries({ queryKey: ["whoami"] }),
    });
  }, [client]);

  useEffect(() => {
    // Browsers open few connections to a server: a page that nobody looks at lets go of its own.
    const follow = () => (paused || document.hidden ? stream.pause() : stream.start());
    follow();
    document.addEventListener("visibilitychange", follow);
    return () => {
      document.removeEventListener("visibilitychange", follow);
      stream.pause();
    };
  }, [stream, paused]);

  const live = useMemo(
    () => ({ state, entries, paused, setPaused, retryNow: () => stream.retryNow() }),
    [state, entries, paused, stream],
  );
  return <Context value={live}>{children}</Context>;
}

function tell(entry: Entry) {
  const ended = entry.events.find((event) => event.kind === "activation_ended");
  if (ended) announce(ended.summary);
}
