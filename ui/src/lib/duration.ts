const SECONDS: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86_400 };

/** The longest time after which something is taken back by itself: a year. */
export const MAX_TTL_SECONDS = 31_536_000;

export type Ttl = { seconds: number | undefined; error?: undefined } | { error: string };

/** A time to live as people write it: `2h`, `1h30m`, `3d`; nothing is no limit. */
export function parseTtl(text: string): Ttl {
  const trimmed = text.trim();
  if (trimmed === "") return { seconds: undefined };
  if (!/^(\d{1,8}[smhd])+$/.test(trimmed)) return { error: "Write it as 45s, 30m, 2h, 1h30m or 3d." };
  let seconds = 0;
  for (const [, count, unit] of trimmed.matchAll(/(\d+)([smhd])/g)) {
    seconds += Number(count) * (SECONDS[unit ?? "s"] ?? 1);
  }
  if (seconds < 1) return { error: "It is at least 1s." };
  if (seconds > MAX_TTL_SECONDS) return { error: "It is at most 365d." };
  return { seconds };
}
