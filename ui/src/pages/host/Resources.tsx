import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { hostConfig } from "../../api/queries";
import type { Schemas } from "../../api/types";
import { Loaded } from "../../parts/Loaded";

/** A resource of a host by its name. */
export function Resources({ host, what, name }: { host: string; what?: Schemas["Served"]; name: string }) {
  const query = useQuery(hostConfig(host, what));
  return (
    <Loaded query={query}>
      {({ resources }) => {
        const found = resources.filter((resource) => resource.name === name);
        if (found.length === 0) {
          return (
            <Text size="sm" c="dimmed">
              It is not served any more: the change was taken back, or the host keeps it from its Envoys.
            </Text>
          );
        }
        return found.map((resource) => (
          <pre key={`${resource.what} ${resource.name}`} className="code">
            {JSON.stringify(resource.resource, null, 2)}
          </pre>
        ));
      }}
    </Loaded>
  );
}
