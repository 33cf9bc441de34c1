import type { WhoAmI } from "../api/types";

/** What an action asks for: to own a service, or a role. */
export type Need =
  | { service: string; orElse?: ("platform" | "security")[] }
  | "platform"
  | "security"
  | "admin";

export type Allowed = { may: true } | { may: false; why: string };

const WHOSE: Record<string, string> = {
  platform: "This belongs to the platform team: it needs the role platform.",
  security: "This belongs to security: it needs the role security.",
  admin: "This needs the role admin.",
};

/** Whether somebody may do something; if not, why and whom to ask. Tower decides again when it is done. */
export function allowed(who: WhoAmI | null | undefined, need: Need): Allowed {
  if (!who) return { may: false, why: "Sign in first." };
  if (who.roles.includes("admin")) return { may: true };
  const you = `You are ${who.roles.join(" and ")}.`;
  if (typeof need === "string") {
    return who.roles.includes(need) ? { may: true } : { may: false, why: `${WHOSE[need]} ${you}` };
  }
  if (who.roles.includes("owner") && who.services.includes(need.service)) return { may: true };
  if (need.orElse?.some((role) => who.roles.includes(role))) return { may: true };
  const others = need.orElse ? ` (or ${need.orElse.join(" or ")})` : "";
  return {
    may: false,
    why: `Only owners of ${need.service}${others} may do this: ask them, or an admin. ${you}`,
  };
}
