import { Group, Paper, Stack, Text, Title } from "@mantine/core";
import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { Suspense, useState } from "react";
import { useNavigate, useParams } from "react-router";
import { api, ok } from "../../api/client";
import { document, versions } from "../../api/queries";
import { ReadOnlyYaml } from "../../editor";
import { link } from "../../lib/links";
import { Act } from "../../parts/Act";
import { Facts } from "../../parts/Facts";
import { Loaded, Waiting } from "../../parts/Loaded";
import { ReasonDialog } from "../../parts/ReasonDialog";
import { To } from "../../parts/To";
import { When } from "../../parts/When";
import { useService } from "./context";
import { useDraft } from "./draft";
import { VersionState } from "./VersionsTab";

type Deed = "approve" | "retire";

const DEEDS: Record<Deed, { title: string; words: string }> = {
  approve: { title: "Approve", words: "The log tells that you have looked at it and agree." },
  retire: { title: "Retire", words: "It cannot be activated any more. Hosts that have it keep it." },
};

/** A version as it was uploaded, and what can be done with it. */
export function Component() {
  const { name, active, latest_version } = useService();
  const number = Number(useParams().number);
  const navigate = useNavigate();
  const client = useQueryClient();
  const draft = useDraft();
  const [deed, setDeed] = useState<Deed>();
  const text = useQuery(document(name, number));
  const known = useInfiniteQuery(versions(name));
  const version = known.data?.pages.flatMap((page) => page.versions).find((each) => each.number === number);
  const need = { service: name };
  const retired = version?.retired && "It is retired.";
  return (
    <Stack>
      <Group justify="space-between">
        <Group gap="sm">
          <Title order={2}>
            {name}@{number}
          </Title>
          {version && <VersionState version={version} isDefault={number === active?.version} />}
        </Group>
        <Group gap="xs">
          {latest_version && latest_version !== number && (
            <To to={link.diff(name, number, latest_version)} size="sm">
              Compare with the last
            </To>
          )}
          <Act need={need} unless={retired} variant="default" onClick={() => setDeed("approve")}>
            Approve …
          </Act>
          <Act need={need} unless={retired} variant="default" onClick={() => setDeed("retire")}>
            Retire …
          </Act>
          <Act
            need={need}
            unless={draft.changed && "There is a draft already: upload or discard it first."}
            variant="default"
            onClick={() => {
              draft.startFrom(number);
              void navigate(link.service(name, "callers"));
            }}
          >
            Edit from here
          </Act>
          <Act need={need} unless={retired} to={link.activate(name, number)}>
            Activate …
          </Act>
        </Group>
      </Group>
      {version && (
        <Facts
          facts={[
            ["Uploaded", <When key="" ms={version.uploaded_unix_ms} exact />],
            ["By", version.author],
            ["Why", version.reason],
            ["Owner in the document", version.owner],
            [
              "Entry",
              <To key="" to={link.entry(version.index)}>
                {String(version.index)}
              </To>,
            ],
            [
              "Hash",
              <span key="" className="mono">
                {version.hash.slice(0, 16)}
              </span>,
            ],
          ]}
        />
      )}
      <Paper p={0}>
        <Loaded query={text}>
          {(text) => (
            <Suspense fallback={<Waiting />}>
              <ReadOnlyYaml text={text} label={`${name}@${number}`} />
            </Suspense>
          )}
        </Loaded>
      </Paper>
      <ReasonDialog
        opened={deed !== undefined}
        onClose={() => setDeed(undefined)}
        title={deed ? `${DEEDS[deed].title} ${name}@${number}` : ""}
        confirm={deed ? DEEDS[deed].title : ""}
        act={(reason) =>
          ok(
            api.POST(`/api/v1/services/{service}/versions/{number}/${deed ?? "approve"}`, {
              params: { path: { service: name, number } },
              body: { reason },
            }),
          )
        }
        onDone={() => void client.invalidateQueries({ queryKey: ["service", name] })}
      >
        <Text size="sm">{deed && DEEDS[deed].words}</Text>
      </ReasonDialog>
    </Stack>
  );
}
