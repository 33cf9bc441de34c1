import { Activity, Boxes, Database, type LucideIcon, Server } from "lucide-react";

export interface Place {
  to: string;
  label: string;
  /** After `g`. */
  key: string;
  Icon: LucideIcon;
}

/** The navigation, the palette, and what `g` goes to. Rollouts come between services and activity. */
export const places: Place[] = [
  { to: "/", label: "Fleet", key: "f", Icon: Server },
  { to: "/services", label: "Services", key: "s", Icon: Boxes },
  { to: "/activity", label: "Activity", key: "a", Icon: Activity },
  { to: "/sources", label: "Sources and guard", key: "o", Icon: Database },
];
