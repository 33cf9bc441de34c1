import { useSyncExternalStore } from "react";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

const listeners = new Set<() => void>();
let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(listener: () => void) {
  listeners.add(listener);
  timer ??= setInterval(() => {
    now = Date.now();
    for (const each of listeners) each();
  }, 1000);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

/** The time, rounded down to `stepMs`, so that what shows it is drawn no more often. */
export function useNow(stepMs = 1000): number {
  return useSyncExternalStore(subscribe, () => Math.floor(Math.max(now, Date.now()) / stepMs) * stepMs);
}

/** A span in a few characters: `45s`, `3m 5s`, `2h 10m`, `4d 3h`. */
export function span(ms: number): string {
  const abs = Math.max(0, ms);
  if (abs < MINUTE_MS) return `${Math.floor(abs / 1000)}s`;
  if (abs < HOUR_MS) return pair(abs, MINUTE_MS, "m", 1000, "s");
  if (abs < DAY_MS) return pair(abs, HOUR_MS, "h", MINUTE_MS, "m");
  return pair(abs, DAY_MS, "d", HOUR_MS, "h");
}

function pair(ms: number, large: number, largeUnit: string, small: number, smallUnit: string): string {
  const rest = Math.floor((ms % large) / small);
  return `${Math.floor(ms / large)}${largeUnit}${rest ? ` ${rest}${smallUnit}` : ""}`;
}

/** In one unit, for lists: `now`, `45s ago`, `3m ago`, `in 2h`. */
export function relative(ms: number, nowMs: number): string {
  const away = Math.abs(ms - nowMs);
  if (away < 5000) return "now";
  const [unit, name] =
    away < MINUTE_MS
      ? ([1000, "s"] as const)
      : away < HOUR_MS
        ? ([MINUTE_MS, "m"] as const)
        : away < DAY_MS
          ? ([HOUR_MS, "h"] as const)
          : ([DAY_MS, "d"] as const);
  const words = `${Math.floor(away / unit)}${name}`;
  return ms > nowMs ? `in ${words}` : `${words} ago`;
}

/** Date and time to the second, in UTC or in the browser's time zone. */
export function absolute(ms: number, utc: boolean): string {
  const date = new Date(ms);
  if (utc) return `${date.toISOString().slice(0, 19).replace("T", " ")} UTC`;
  const two = (part: number) => String(part).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}
