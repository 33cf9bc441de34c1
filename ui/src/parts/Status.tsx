import { Badge } from "@mantine/core";
import {
  Ban,
  Check,
  CircleDashed,
  CircleX,
  Clock,
  Hourglass,
  type LucideIcon,
  Pause,
  RotateCcw,
  TriangleAlert,
  Unplug,
} from "lucide-react";

interface Look {
  label: string;
  color: string;
  Icon: LucideIcon;
  hint?: string;
}

/** Every state that Tower tells, in words, with a sign and a colour: never by colour alone. */
const LOOKS: Record<string, Look> = {
  // Hosts, and what they hold.
  on_target: {
    label: "On target",
    color: "teal",
    Icon: Check,
    hint: "It has everything that it should have.",
  },
  lagging: {
    label: "Lagging",
    color: "yellow",
    Icon: Clock,
    hint: "Something is not there, or not accepted yet.",
  },
  accepted: { label: "Accepted", color: "teal", Icon: Check, hint: "Every Envoy has accepted all of it." },
  pending: {
    label: "Pending",
    color: "yellow",
    Icon: Clock,
    hint: "Sent, and not yet accepted by every Envoy.",
  },
  no_envoy: {
    label: "No Envoy",
    color: "gray",
    Icon: CircleDashed,
    hint: "No Envoy is connected that could accept it. Nobody waits for it.",
  },
  not_reported: {
    label: "Not reported",
    color: "yellow",
    Icon: Clock,
    hint: "The Beacon has not said that it has it.",
  },
  rejected: { label: "Rejected", color: "red", Icon: CircleX, hint: "An Envoy refused it, for its content." },
  host_fault: {
    label: "Host fault",
    color: "orange",
    Icon: TriangleAlert,
    hint: "An Envoy could not take it, for a reason of its host: a port, a file.",
  },
  unusable: { label: "Unusable", color: "orange", Icon: TriangleAlert, hint: "The Beacon cannot use it." },
  silent: { label: "Silent", color: "violet", Icon: Unplug, hint: "The Beacon is not connected." },
  lost: {
    label: "Lost",
    color: "orange",
    Icon: Unplug,
    hint: "The Beacon was connected, and is not any more.",
  },
  // A type of resources at an Envoy.
  synced: { label: "Synced", color: "teal", Icon: Check, hint: "It has accepted what was sent last." },
  never_accepted: {
    label: "Never accepted",
    color: "orange",
    Icon: CircleDashed,
    hint: "It has never accepted anything.",
  },
  not_sent: { label: "Not sent", color: "gray", Icon: CircleDashed, hint: "Nothing was sent." },
  // Activations.
  progressing: { label: "Under way", color: "blue", Icon: Hourglass },
  succeeded: { label: "Succeeded", color: "teal", Icon: Check, hint: "Accepted by all of its hosts." },
  aborted: { label: "Aborted", color: "orange", Icon: Ban, hint: "Somebody took it back on its way." },
  superseded: { label: "Superseded", color: "gray", Icon: RotateCcw, hint: "Another one took its place." },
  expired: {
    label: "Expired",
    color: "gray",
    Icon: Clock,
    hint: "Its time was over, and it was taken back.",
  },
  timed_out: {
    label: "Timed out",
    color: "orange",
    Icon: Clock,
    hint: "It was not accepted in time, and was taken back.",
  },
  // Sources.
  loading: { label: "Loading", color: "blue", Icon: Hourglass, hint: "Never read in full." },
  live: { label: "Live", color: "teal", Icon: Check, hint: "Read in full, and watched." },
  stale: {
    label: "Stale",
    color: "orange",
    Icon: TriangleAlert,
    hint: "Out of touch now; what was read before stays published.",
  },
  // Endpoints.
  HEALTHY: { label: "Healthy", color: "teal", Icon: Check },
  DRAINING: { label: "Draining", color: "yellow", Icon: Pause },
  DEGRADED: { label: "Degraded", color: "orange", Icon: TriangleAlert },
  UNHEALTHY: { label: "Unhealthy", color: "red", Icon: CircleX },
};

const LOST_SOURCE: Look = {
  label: "Lost",
  color: "red",
  Icon: Unplug,
  hint: "Out of touch for longer than its sessions live; what was read before stays published.",
};

export function Status({ state, of }: { state: string; of?: "source" }) {
  const known = of === "source" && state === "lost" ? LOST_SOURCE : LOOKS[state];
  const { label, color, Icon, hint } = known ?? {
    label: state,
    color: "gray",
    Icon: CircleDashed,
    hint: undefined,
  };
  return (
    <Badge color={color} leftSection={<Icon size={12} aria-hidden />} className="status" title={hint}>
      {label}
    </Badge>
  );
}
