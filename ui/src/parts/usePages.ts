import type { InfiniteData, UseInfiniteQueryResult } from "@tanstack/react-query";
import { useCallback, useMemo } from "react";

/** The rows of all pages that have come, and how to get the next. */
export function usePages<P, T>(query: UseInfiniteQueryResult<InfiniteData<P>>, rowsOf: (page: P) => T[]) {
  const { data, hasNextPage, isFetchingNextPage, fetchNextPage } = query;
  // biome-ignore lint/correctness/useExhaustiveDependencies: rowsOf picks a field and never changes
  const rows = useMemo(() => data?.pages.flatMap(rowsOf) ?? [], [data]);
  const more = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage]);
  return { rows, more, complete: !hasNextPage };
}
