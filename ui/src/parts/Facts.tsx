import { Group, Text } from "@mantine/core";
import type { ReactNode } from "react";

/** What is known of something, in a line: names above values. What is absent is left out. */
export function Facts({ facts }: { facts: [string, ReactNode][] }) {
  return (
    <Group component="dl" gap="xl" m={0} align="flex-start">
      {facts
        .filter(([, value]) => value !== undefined && value !== null && value !== "" && value !== false)
        .map(([name, value]) => (
          <div key={name}>
            <Text component="dt" size="xs" c="dimmed">
              {name}
            </Text>
            <Text component="dd" size="sm" m={0} className="break">
              {value}
            </Text>
          </div>
        ))}
    </Group>
  );
}
