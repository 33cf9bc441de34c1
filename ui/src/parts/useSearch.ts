import { useCallback } from "react";
import { useSearchParams } from "react-router";

/** What is set in one go, before the address follows. */
let queued: URLSearchParams | undefined;

/**
 * A parameter of the page's address: what is set here is in every link and bookmark. Several may be set one after
 * the other; the address changes once.
 */
export function useSearch(name: string, fallback = ""): [string, (value: string) => void] {
  const [params, setParams] = useSearchParams();
  const set = useCallback(
    (value: string) => {
      const first = queued === undefined;
      queued ??= new URLSearchParams(window.location.search);
      if (value === "" || value === fallback) queued.delete(name);
      else queued.set(name, value);
      if (!first) return;
      queueMicrotask(() => {
        const after = queued;
        queued = undefined;
        if (after) setParams(after, { replace: true, preventScrollReset: true });
      });
    },
    [name, fallback, setParams],
  );
  return [params.get(name) ?? fallback, set];
}
