import { Progress as Bar, Group, Text } from "@mantine/core";
import type { Schemas } from "../../api/types";

const PARTS: { key: keyof Schemas["Progress"]; label: string; color: string }[] = [
  { key: "accepted", label: "accepted", color: "teal" },
  { key: "pending", label: "pending", color: "yellow" },
  { key: "rejected", label: "rejected", color: "red" },
  { key: "host_faults", label: "host faults", color: "orange" },
  { key: "silent", label: "silent", color: "violet" },
  { key: "no_envoy", label: "without Envoy", color: "gray" },
];

/** How many hosts are how far. */
export function Progress({ hosts }: { hosts: Schemas["Progress"] }) {
  const there = PARTS.filter(({ key }) => hosts[key] > 0);
  const words = there.map(({ key, label }) => `${hosts[key]} ${label}`).join(", ");
  return (
    <div>
      <Bar.Root size={14} role="img" aria-label={`Of ${hosts.total} hosts: ${words || "none"}`}>
        {there.map(({ key, color }) => (
          <Bar.Section
            key={key}
            value={(hosts[key] / Math.max(hosts.total, 1)) * 100}
            color={color}
            withAria={false}
          />
        ))}
      </Bar.Root>
      <Group gap="md" mt={6}>
        <Text size="sm" fw={600}>
          {hosts.total} {hosts.total === 1 ? "host" : "hosts"}
        </Text>
        {there.map(({ key, label, color }) => (
          <Group key={key} gap={6}>
            <span
              className="swatch"
              style={{
                background: `var(--mantine-color-${color.replace(".", "-")}${color.includes(".") ? "" : "-filled"})`,
              }}
            />
            <Text size="sm">
              {hosts[key]} {label}
            </Text>
          </Group>
        ))}
      </Group>
    </div>
  );
}
