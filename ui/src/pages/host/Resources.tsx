import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { stringify } from "yaml";
import { hostConfig } from "../../api/queries";
import type { Schemas } from "../../api/types";
import { Code } from "../../parts/Code";
import { Loaded } from "../../parts/Loaded";

interface Props {
  host: string;
  what?: Schemas["Served"];
  name: string;
  /** As it would be with this release. */
  release?: string;
}

/** A resource of a host by its name. */
export function Resources({ host, what, name, release }: Props) {
  const query = useQuery(hostConfig(host, name, what, release));
  return (
    <Loaded query={query}>
      {({ resources }) => {
        const found = resources.filter((resource) => resource.name === name);
        if (found.length === 0) {
          return (
            <Text size="sm" c="dimmed">
              There is no resource of this name in what the host is, or would be, served.
            </Text>
          );
        }
        return found.map((resource) => (
          <Code
            key={`${resource.what} ${resource.name}`}
            text={stringify(resource.resource)}
            label={`${resource.what} ${resource.name}`}
          />
        ));
      }}
    </Loaded>
  );
}
