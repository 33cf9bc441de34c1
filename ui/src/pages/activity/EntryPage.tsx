import { Paper, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useParams } from "react-router";
import { entry } from "../../api/queries";
import type { Entry } from "../../api/types";
import { link } from "../../lib/links";
import { Changes } from "../../parts/Changes";
import { Facts } from "../../parts/Facts";
import { Loaded } from "../../parts/Loaded";
import { Page } from "../../parts/Page";
import { To } from "../../parts/To";
import { When } from "../../parts/When";

/** One entry for good: what links in chats and tickets lead to. */
export function Component() {
  const { index = "" } = useParams();
  const query = useQuery(entry(Number(index)));
  return (
    <Page title={`Entry ${index} of the activity log`}>
      <Loaded query={query}>{(entry) => <Whole entry={entry} />}</Loaded>
    </Page>
  );
}

function Whole({ entry }: { entry: Entry }) {
  return (
    <>
      <Paper>
        <Facts
          facts={[
            ["When", <When key="" ms={entry.time_unix_ms} exact />],
            [
              "Who",
              <To key="" to={`/activity?author=${encodeURIComponent(entry.author)}`}>
                {entry.author}
              </To>,
            ],
            ["Command", entry.command],
            ["Why", entry.reason],
            ["Credential", entry.credential],
            ["From", entry.address],
            ["Id of the command", entry.command_id],
          ]}
        />
      </Paper>
      {entry.events.map((event) => (
        <Paper key={`${event.kind} ${event.summary}`} component="section" aria-label={event.summary}>
          <Stack gap="sm">
            <Title order={2} className="break">
              {event.summary}
            </Title>
            <Facts
              facts={[
                ["Event", event.kind],
                ["Service", event.service && <To to={link.service(event.service)}>{event.service}</To>],
                ["Activation", activationOf(event.data)],
              ]}
            />
            {event.changes && event.changes.length > 0 && <Changes changes={event.changes} />}
            {event.changes?.length === 0 && <Text size="sm">Nothing is otherwise than before.</Text>}
            <details>
              <summary>All its fields</summary>
              <pre className="code">{JSON.stringify(event.data, null, 2)}</pre>
            </details>
          </Stack>
        </Paper>
      ))}
    </>
  );
}

function activationOf(data: unknown) {
  const id = (data as { activation?: unknown } | null)?.activation;
  return typeof id === "string" && id !== "" ? <To to={link.activation(id)}>{id}</To> : undefined;
}
