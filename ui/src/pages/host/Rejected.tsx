import { Paper, SimpleGrid, Text, Title } from "@mantine/core";
import type { Schemas } from "../../api/types";
import { link } from "../../lib/links";
import { Facts } from "../../parts/Facts";
import { To } from "../../parts/To";
import { Resources } from "./Resources";
import { servedOf, typeName } from "./state";

interface Props {
  service: string;
  rejection: Schemas["Rejection"];
  /** The release that was refused. */
  release: string | undefined;
}

/** A refusal by an Envoy: what it said, beside the resource that it is about. */
export function Rejected({ service, rejection, release }: Props) {
  const { host, client, type_url, resource, error } = rejection;
  return (
    <Paper component="section" aria-label={`What ${client} refused`}>
      <Title order={2} mb="xs" className="break">
        {client} refused {resource || typeName(type_url)}
      </Title>
      <Facts
        facts={[
          [
            "Service",
            <To key="" to={link.service(service)}>
              {service}
            </To>,
          ],
          ["Type", typeName(type_url)],
          [
            "Resource",
            <span key="" className="mono">
              {resource}
            </span>,
          ],
          [
            "Host",
            <To key="" to={link.host(host)}>
              {host}
            </To>,
          ],
        ]}
      />
      <SimpleGrid cols={{ base: 1, lg: 2 }} mt="sm">
        <div>
          <Text size="sm" fw={600} mb={4}>
            What the Envoy said
          </Text>
          <pre className="code error-code">{error}</pre>
        </div>
        <div>
          <Text size="sm" fw={600} mb={4}>
            The resource that it refused
          </Text>
          <Resources host={host} what={servedOf(type_url)} name={resource} release={release} />
        </div>
      </SimpleGrid>
    </Paper>
  );
}
