import { useCallback } from "react";
import { useSearchParams } from "react-router";

/** A parameter of the page's address: what is set here is in every link and bookmark. */
export function useSearch(name: string, fallback = ""): [string, (value: string) => void] {
  const [params, setParams] = useSearchParams();
  const set = useCallback(
    (value: string) =>
      setParams(
        (before) => {
          const after = new URLSearchParams(before);
          if (value === "" || value === fallback) after.delete(name);
          else after.set(name, value);
          return after;
        },
        { replace: true, preventScrollReset: true },
      ),
    [name, fallback, setParams],
  );
  return [params.get(name) ?? fallback, set];
}
