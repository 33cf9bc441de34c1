import { Text } from "@mantine/core";
import { Check, Circle, CircleX, LoaderCircle } from "lucide-react";
import type { Activation } from "../../api/types";
import { span } from "../../lib/time";

/** The way of an activation as a list of steps, with the present one marked. */
export function Steps({ activation }: { activation: Activation }) {
  const { steps, step, state } = activation;
  return (
    <ol className="steps">
      {steps.map((each, place) => {
        const now = place === step;
        const over = place < step || (now && state === "succeeded");
        const failed = now && !["progressing", "succeeded"].includes(state);
        const [Icon, word] = over
          ? [Check, "done"]
          : failed
            ? [CircleX, "ended here"]
            : now
              ? [LoaderCircle, "now"]
              : [Circle, place < step || state !== "progressing" ? "not reached" : "to come"];
        return (
          <li key={each.audience} className={now ? "now" : undefined} aria-current={now ? "step" : undefined}>
            <Icon size={16} aria-hidden />
            <div>
              <Text size="sm" fw={now ? 600 : 400} className="break">
                {each.title}
              </Text>
              <Text size="xs" c="dimmed">
                {word}
                {each.hosts != null && `, ${each.accepted ?? 0} of ${each.hosts} accepted`}
                {each.pause_ms > 0 && `, not sooner than ${span(each.pause_ms)} after the one before`}
              </Text>
            </div>
          </li>
        );
      })}
    </ol>
  );
}
