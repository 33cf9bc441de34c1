import { queryOptions } from "@tanstack/react-query";
import { api, ok, setCsrf } from "./client";
import { refusal } from "./problem";
import type { WhoAmI } from "./types";

const PATH = "/api/v1/session";

/** Who one is; null if nobody. */
export const whoami = queryOptions({
  queryKey: ["whoami"],
  queryFn: async (): Promise<WhoAmI | null> => {
    const asked = await api.GET("/api/v1/whoami");
    if (asked.response.status === 401) return null;
    return remember(await ok(Promise.resolve(asked)));
  },
  staleTime: Number.POSITIVE_INFINITY,
});

/** Signs in: the token goes to Tower once, and a cookie that scripts cannot read takes its place. */
export async function signIn(token: string): Promise<WhoAmI> {
  const response = await fetch(PATH, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ token: token.trim() }),
  });
  const body: unknown = await response.json().catch(() => undefined);
  if (!response.ok) throw refusal(response.status, body);
  return remember(body as WhoAmI);
}

export async function signOut(csrf: string | null | undefined) {
  const headers: Record<string, string> = csrf ? { "X-Tower-CSRF": csrf } : {};
  const response = await fetch(PATH, { method: "DELETE", headers });
  if (!response.ok && response.status !== 401) {
    throw refusal(response.status, await response.json().catch(() => undefined));
  }
  setCsrf(undefined);
}

function remember(who: WhoAmI): WhoAmI {
  setCsrf(who.csrf ?? undefined);
  return who;
}
