import { useSyncExternalStore } from "react";

let message = "";
const listeners = new Set<() => void>();

/** Says something to people who listen to the page instead of looking at it. */
export function announce(text: string) {
  // The same words twice are said twice.
  message = text === message ? `${text}\u00a0` : text;
  for (const listener of listeners) listener();
}

export function useAnnouncement(): string {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => message,
  );
}
