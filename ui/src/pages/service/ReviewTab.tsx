import { Group, Paper, SegmentedControl, Stack, Text, Textarea, Title } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Suspense, useState } from "react";
import { useNavigate } from "react-router";
import { api, ifMatch, ok } from "../../api/client";
import { plan } from "../../api/queries";
import { TextDiff } from "../../editor";
import { announce } from "../../lib/announce";
import { link } from "../../lib/links";
import { Act } from "../../parts/Act";
import { Loaded, Waiting } from "../../parts/Loaded";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { To } from "../../parts/To";
import { useSearch } from "../../parts/useSearch";
import { useService } from "./context";
import { useDraft } from "./draft";
import { PlanView } from "./PlanView";

/** The draft as a change: what it differs in and what it would do, before it is uploaded as a version. */
export function Component() {
  const draft = useDraft();
  const { name } = useService();
  if (!draft.changed || draft.text === undefined) {
    return (
      <Text>
        There is no draft. <To to={link.service(name, "callers")}>Edit the service</To> first.
      </Text>
    );
  }
  return <Review text={draft.text} />;
}

function Review({ text }: { text: string }) {
  const draft = useDraft();
  const { name } = useService();
  const [view, setView] = useSearch("view", "effect");
  const query = useQuery(plan(name, { document: text }));
  const wrong = query.data?.findings.some(({ severity }) => severity === "error");
  return (
    <Stack>
      <Group justify="space-between">
        <Title order={2}>Review the draft</Title>
        <SegmentedControl
          size="xs"
          aria-label="What is shown"
          value={view}
          onChange={setView}
          data={[
            { value: "effect", label: "What it does" },
            { value: "text", label: "By text" },
          ]}
        />
      </Group>
      <Upload text={text} unless={wrong && "It has errors: see the findings."} />
      {view === "text" ? (
        <Paper p={0}>
          <Suspense fallback={<Waiting />}>
            <TextDiff
              before={draft.baseText ?? ""}
              after={text}
              label="The draft and what it was changed from"
            />
          </Suspense>
        </Paper>
      ) : (
        <Loaded query={query}>{(plan) => <PlanView plan={plan} service={name} />}</Loaded>
      )}
    </Stack>
  );
}

function Upload({ text, unless }: { text: string; unless?: string | false }) {
  const draft = useDraft();
  const { name } = useService();
  const navigate = useNavigate();
  const client = useQueryClient();
  const [reason, setReason] = useState("");
  const uploading = useMutation({
    mutationFn: () =>
      ok(
        api.POST("/api/v1/services/{service}/versions", {
          params: {
            path: { service: name },
            query: { file: `${name}.yaml`, reason: reason.trim() || undefined },
            header: { "If-Match": ifMatch(draft.index) },
          },
          headers: { "Content-Type": "application/yaml" },
          body: text,
          bodySerializer: (body) => body as string,
        }),
      ),
    onSuccess: async (uploaded) => {
      announce(`${uploaded.version} is uploaded. It changes nothing until it is activated.`);
      draft.discard();
      await client.invalidateQueries({ queryKey: ["service", name] });
      void navigate(link.activate(name, uploaded.number));
    },
  });
  const overtaken = draft.overtakenBy !== undefined && "Look at what somebody else uploaded first, above.";
  return (
    <Paper component="section" aria-label="Upload">
      <Stack gap="sm">
        <Group align="flex-end" gap="sm">
          <Textarea
            label="Reason"
            description="For those who read the activity log."
            autosize
            minRows={1}
            maxLength={500}
            style={{ flex: 1 }}
            value={reason}
            onChange={(event) => setReason(event.currentTarget.value)}
          />
          <Act
            need={{ service: name }}
            unless={unless || overtaken}
            size="sm"
            loading={uploading.isPending}
            onClick={() => uploading.mutate()}
          >
            Upload as a version
          </Act>
        </Group>
        <Text size="sm" c="dimmed">
          A version changes nothing by itself. It can be activated in the next step, or later.
        </Text>
        {uploading.error && <ProblemAlert error={uploading.error} />}
      </Stack>
    </Paper>
  );
}
