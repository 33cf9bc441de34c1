import { Alert, Button, Group, Text, Tooltip } from "@mantine/core";
import { CircleDashed, Pause, Play, Radio, Unplug } from "lucide-react";
import { useLive } from "../api/live";
import { useNow } from "../lib/time";
import { When } from "../parts/When";

/** A cut that heals at once is nobody's business. */
const PATIENCE_MS = 2500;

const LOOKS = {
  live: { label: "Live", hint: "What happens is shown as it happens. Press to pause.", Icon: Radio },
  connecting: { label: "Connecting", hint: "On the way to Tower.", Icon: CircleDashed },
  cut: { label: "Cut", hint: "Tower is out of touch; it is tried again by itself.", Icon: Unplug },
  paused: { label: "Paused", hint: "Nothing is shown as it happens. Press to go on.", Icon: Pause },
};

/** Whether the page follows what happens; also the switch for it. */
export function LiveSign() {
  const { state, paused, setPaused } = useLive();
  const { label, hint, Icon } = LOOKS[state.kind];
  return (
    <Tooltip label={hint}>
      <Button
        variant="subtle"
        color={state.kind === "live" ? "teal" : state.kind === "cut" ? "red" : "gray"}
        leftSection={<Icon size={14} aria-hidden />}
        aria-pressed={!paused}
        aria-label={`Live updates: ${label}`}
        onClick={() => setPaused(!paused)}
      >
        {label}
      </Button>
    </Tooltip>
  );
}

/** What is shown may be old, since when, and what is done about it. */
export function LiveBanner() {
  const { state, paused, setPaused, retryNow } = useLive();
  const now = useNow(1000);
  if (state.kind === "paused" && paused) {
    return (
      <Alert
        color="gray"
        mb="md"
        py="xs"
        icon={<Pause size={16} aria-hidden />}
        title="Live updates are paused"
      >
        <Group gap="sm">
          <Text size="sm">
            Since <When ms={state.sinceMs} exact />. What is shown is as old as that, or a few seconds.
          </Text>
          <Button
            variant="default"
            leftSection={<Play size={12} aria-hidden />}
            onClick={() => setPaused(false)}
          >
            Go on
          </Button>
        </Group>
      </Alert>
    );
  }
  if (state.kind !== "cut" || now - state.sinceMs < PATIENCE_MS) return null;
  return (
    <Alert
      color="orange"
      role="alert"
      mb="md"
      py="xs"
      icon={<Unplug size={16} aria-hidden />}
      title="Stale: the live updates are cut"
    >
      <Group gap="sm">
        <Text size="sm">
          Since <When ms={state.sinceMs} exact />: {state.why}. What is shown may be out of date. It is tried
          again by itself, and nothing that happened meanwhile is missed.
        </Text>
        <Button variant="default" onClick={retryNow}>
          Try now
        </Button>
      </Group>
    </Alert>
  );
}
