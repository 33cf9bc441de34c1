import { Alert, Text } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { activations } from "../../api/queries";
import { link } from "../../lib/links";
import { To } from "../../parts/To";
import { When } from "../../parts/When";

const BAD: Record<string, string> = {
  rejected: "It was refused by an Envoy",
  timed_out: "It was not accepted in time",
  aborted: "It was stopped",
};

/** How the version fared when it was activated the last time, if that did not go well. */
export function Before({ service, version }: { service: string; version: number }) {
  const query = useInfiniteQuery(activations(service));
  const last = query.data?.pages[0]?.activations.find((activation) => activation.version === version);
  const words = last && BAD[last.state];
  if (!last || !words) return null;
  return (
    <Alert color="orange" title={`${words} the last time`} py="xs">
      <Text size="sm" className="break">
        <To to={link.activation(last.id)}>{last.id}</To> by {last.author}, <When ms={last.started_unix_ms} />
        {last.detail && `: ${last.detail}`}
      </Text>
    </Alert>
  );
}
