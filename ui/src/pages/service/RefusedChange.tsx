import { Paper, Text, Title } from "@mantine/core";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { part, plan, versions } from "../../api/queries";
import type { Activation, Schemas } from "../../api/types";
import { Changes } from "../../parts/Changes";
import { Loaded } from "../../parts/Loaded";

/** Which fields a change that was refused would have changed, and who wrote them: whom to talk to. */
export function RefusedChange({ activation }: { activation: Activation }) {
  const { service, version } = activation;
  const query = useQuery({ ...plan(service, { version }), enabled: version > 0 });
  const authors = useAuthors(service, version);
  if (version === 0) return null;
  return (
    <Paper component="section" aria-label="What it would have changed">
      <Title order={2} mb="xs">
        What it would have changed, and who wrote that
      </Title>
      <Loaded query={query}>
        {({ from }) => {
          const changes = from.flatMap((each) => each.changes);
          const once = changes.filter(
            ({ field }, place) => changes.findIndex((each) => each.field === field) === place,
          );
          return once.length > 0 ? (
            <Changes changes={once} authors={authors} />
          ) : (
            <Text size="sm">The hosts have all of this already, by now.</Text>
          );
        }}
      </Loaded>
    </Paper>
  );
}

/** Who last wrote each owner's part of the service. */
function useAuthors(service: string, version: number): Record<string, string | undefined> {
  const known = useInfiniteQuery(versions(service));
  const uploaded = known.data?.pages
    .flatMap((page) => page.versions)
    .find(({ number }) => number === version);
  const platform = useQuery(part("platform", service));
  const platformForAll = useQuery(part("platform"));
  const security = useQuery(part("security", service));
  const securityForAll = useQuery(part("security"));
  return {
    service: uploaded?.author,
    platform: authorOf(platform.data) ?? authorOf(platformForAll.data),
    security: authorOf(security.data) ?? authorOf(securityForAll.data),
  };
}

const authorOf = (data: Schemas["Part"] | string | null | undefined) =>
  typeof data === "object" ? data?.author : undefined;
