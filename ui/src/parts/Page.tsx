import { Group, Stack, Title } from "@mantine/core";
import type { ReactNode } from "react";

interface Props {
  /** What the browser's tab says. */
  title: string;
  /** What the page says, if not the same. */
  heading?: ReactNode;
  /** What can be done here. */
  actions?: ReactNode;
  children: ReactNode;
}

/** A page: its title in the tab and on itself, and what can be done. */
export function Page({ title, heading, actions, children }: Props) {
  return (
    <Stack gap="md">
      <title>{`${title} · Tower`}</title>
      <Group justify="space-between" align="center" gap="sm">
        <Title order={1}>{heading ?? title}</Title>
        {actions && <Group gap="xs">{actions}</Group>}
      </Group>
      {children}
    </Stack>
  );
}
