import { Checkbox, Group, NumberInput, Radio, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import { parseTtl } from "../../lib/duration";

const FIRST = "10%";

/** How a change goes to its hosts, and for how long: what activations and traffic have in common. */
export interface Way {
  steps: "usual" | "own" | "once";
  percent: number;
  pause: number;
  ttl: string;
  reason: string;
}

export function useWay() {
  return useState<Way>({ steps: "usual", percent: 25, pause: 60, ttl: "", reason: "" });
}

/** Why it cannot be done like this, if it cannot. */
export function wayError(way: Way): string | undefined {
  const ttl = parseTtl(way.ttl);
  if (ttl.error) return `How long: ${ttl.error}`;
  if (way.steps === "once" && way.reason.trim() === "") return "All at once needs a reason.";
  return undefined;
}

export function wayRequest(way: Way) {
  const ttl = parseTtl(way.ttl);
  return {
    at_once: way.steps === "once" || undefined,
    steps:
      way.steps === "own"
        ? [{ audience: `${way.percent}%` }, { audience: "everyone", pause_seconds: way.pause }]
        : undefined,
    ttl_seconds: ttl.error === undefined ? ttl.seconds : undefined,
    reason: way.reason.trim() || undefined,
  };
}

interface Props {
  way: Way;
  onChange: (way: Way) => void;
  reasonNeeded?: boolean;
}

export function WayFields({ way, onChange, reasonNeeded = false }: Props) {
  const set = (part: Partial<Way>) => onChange({ ...way, ...part });
  const ttl = parseTtl(way.ttl);
  return (
    <Stack gap="sm">
      <Radio.Group
        label="Steps"
        value={way.steps}
        onChange={(steps) => set({ steps: steps as Way["steps"] })}
      >
        <Stack gap={6} mt={4}>
          <Radio value="usual" label={`One host, then ${FIRST}, then all`} />
          <Radio
            value="own"
            label={
              <Group gap={6}>
                <NumberInput
                  aria-label="Percent in the first step"
                  size="xs"
                  w={64}
                  min={1}
                  max={99}
                  hideControls
                  value={way.percent}
                  onChange={(value) => set({ percent: Number(value) || 1, steps: "own" })}
                />
                % first, then all after
                <NumberInput
                  aria-label="Seconds between the steps"
                  size="xs"
                  w={72}
                  min={0}
                  max={86_400}
                  hideControls
                  value={way.pause}
                  onChange={(value) => set({ pause: Number(value) || 0, steps: "own" })}
                />
                seconds
              </Group>
            }
          />
          <Radio value="once" label="All at once (needs a reason)" />
        </Stack>
      </Radio.Group>
      <TextInput
        label="Taken back by itself after"
        description="Such as 2h; nothing is never."
        placeholder="never"
        w={220}
        value={way.ttl}
        error={ttl.error}
        onChange={(event) => set({ ttl: event.currentTarget.value })}
      />
      <Textarea
        label="Reason"
        description="For those who read the activity log."
        required={reasonNeeded || way.steps === "once"}
        autosize
        minRows={1}
        maxLength={500}
        value={way.reason}
        onChange={(event) => set({ reason: event.currentTarget.value })}
      />
      <Text size="sm" c="dimmed">
        Each step waits until the Envoys have accepted it. If one refuses, all of it is taken back by itself.
      </Text>
    </Stack>
  );
}

export function Again({ checked, onChange }: { checked: boolean; onChange: (checked: boolean) => void }) {
  return (
    <Checkbox
      label="Also if it was rejected, or gone back from, before"
      checked={checked}
      onChange={(event) => onChange(event.currentTarget.checked)}
    />
  );
}
