import { Loader, Stack, Text } from "@mantine/core";
import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { ProblemAlert } from "./ProblemAlert";

interface Props<T> {
  query: UseQueryResult<T>;
  children: (data: T) => ReactNode;
}

/** What was asked for, once it is there. If asking again fails, what was there stays, below what went wrong. */
export function Loaded<T>({ query, children }: Props<T>) {
  if (query.data === undefined) {
    if (query.error) return <ProblemAlert error={query.error} onRetry={() => void query.refetch()} />;
    return <Waiting />;
  }
  return (
    <Stack gap="md">
      {query.error && <ProblemAlert error={query.error} onRetry={() => void query.refetch()} />}
      {children(query.data)}
    </Stack>
  );
}

export function Waiting() {
  return (
    <Stack align="center" py="xl" role="status">
      <Loader size="sm" aria-hidden />
      <Text size="sm" c="dimmed">
        Asking Tower …
      </Text>
    </Stack>
  );
}
