/** A short time as people say it: `0.4 ms`, `18 ms`, `8.1 s`. */
export function millis(ms: number): string {
  if (ms >= 1000) return `${round(ms / 1000)} s`;
  return `${round(ms)} ms`;
}

const round = (value: number) => (value < 10 ? Math.round(value * 10) / 10 : Math.round(value));
