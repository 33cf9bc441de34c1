import { Alert, Anchor, Button, Grid, Group, Paper, Stack, Switch, Text, Title } from "@mantine/core";
import { useDebouncedValue, useLocalStorage } from "@mantine/hooks";
import { useQueries, useQuery } from "@tanstack/react-query";
import { Suspense, useMemo, useState } from "react";
import { askPlan, documentSchema } from "../../../api/queries";
import { whoami } from "../../../api/session";
import type { Finding } from "../../../api/types";
import { YamlEditor } from "../../../editor";
import { announce } from "../../../lib/announce";
import { moveItem, type Path, removeField, renameKey, setField } from "../../../lib/document";
import { allowed } from "../../../lib/permissions";
import { type OwnerSchemas, type RawSchema, schemaAt, shapeOf } from "../../../lib/schema";
import { Findings } from "../../../parts/Findings";
import { Waiting } from "../../../parts/Loaded";
import { ProblemAlert } from "../../../parts/ProblemAlert";
import { useSearch } from "../../../parts/useSearch";
import { Words } from "../../../parts/Words";
import { useService } from "../context";
import { type Draft, useDraft } from "../draft";
import { type Form, FormContext } from "./form/context";
import { Fields } from "./form/ObjectField";

export type Section = "callers" | "inbound" | "outbound";

/** A side of a service as a form and as YAML, which are two views of one text. */
export function EditPage({ section }: { section: Section }) {
  const draft = useDraft();
  const schemas = useSchemas();
  if (draft.error) return <ProblemAlert error={draft.error} />;
  if (schemas.error) return <ProblemAlert error={schemas.error} />;
  if (draft.text === undefined || !schemas.data) return <Waiting />;
  return <Editors section={section} draft={draft} text={draft.text} schemas={schemas.data} />;
}

function useSchemas(): { data?: OwnerSchemas; error: unknown } {
  const [all, service, platform, security] = useQueries({
    queries: [
      documentSchema(),
      documentSchema("service"),
      documentSchema("platform"),
      documentSchema("security"),
    ],
  });
  return useMemo(() => {
    const error = all.error ?? service.error ?? platform.error ?? security.error;
    if (!all.data || !service.data || !platform.data || !security.data) return { error };
    return {
      error,
      data: {
        all: all.data as RawSchema,
        service: service.data as RawSchema,
        platform: platform.data as RawSchema,
        security: security.data as RawSchema,
      },
    };
  }, [
    all.data,
    service.data,
    platform.data,
    security.data,
    all.error,
    service.error,
    platform.error,
    security.error,
  ]);
}

interface EditorsProps {
  section: Section;
  draft: Draft;
  text: string;
  schemas: OwnerSchemas;
}

function Editors({ section, draft, text, schemas }: EditorsProps) {
  const service = useService();
  const [yaml, setYaml] = useSearch("yaml", "on");
  const [showHelp, setShowHelp] = useLocalStorage({ key: "tower.fieldHelp", defaultValue: true });
  const [goTo, setGoTo] = useState<{ line: number; time: number }>();
  const { data: who } = useQuery(whoami);
  const permission = allowed(who, { service: service.name });
  const findings = useFindings(draft, text);
  const form = useFormOf({ draft, text, schemas, findings, showHelp, locked: !permission.may });
  return (
    <Stack gap="sm">
      <Group justify="space-between">
        <Text size="sm" c="dimmed">
          {draft.base === null ? "A first document" : `${service.name}@${draft.base}`}
          {draft.changed && ", changed"}
          {!draft.changed && service.latest_version && service.latest_version !== draft.base && (
            <>
              . The last one uploaded is{" "}
              <button
                type="button"
                className="link-button"
                onClick={() => draft.startFrom(service.latest_version ?? 0)}
              >
                {service.name}@{service.latest_version}: edit that instead
              </button>
            </>
          )}
        </Text>
        <Group gap="md">
          <Switch
            size="xs"
            label="Field help"
            checked={showHelp}
            onChange={(event) => setShowHelp(event.currentTarget.checked)}
          />
          <Switch
            size="xs"
            label="YAML"
            checked={yaml === "on"}
            onChange={(event) => setYaml(event.currentTarget.checked ? "on" : "off")}
          />
        </Group>
      </Group>
      {!permission.may && (
        <Alert color="gray" py="xs" title="You can look, and not change">
          {permission.why}
        </Alert>
      )}
      <Grid gap="md">
        <Grid.Col span={{ base: 12, lg: yaml === "on" ? 6 : 12 }}>
          <Paper component="section" aria-label="Form">
            {form ? (
              <FormContext value={form}>
                <SectionFields section={section} schemas={schemas} />
              </FormContext>
            ) : (
              <Alert color="orange" title={`Line ${draft.parsed?.error?.line} of the YAML cannot be read`}>
                <Text size="sm">{draft.parsed?.error?.message}. The form comes back when it can.</Text>
                <Button variant="default" mt="xs" onClick={draft.discard}>
                  Discard the draft
                </Button>
              </Alert>
            )}
          </Paper>
        </Grid.Col>
        {yaml === "on" && (
          <Grid.Col span={{ base: 12, lg: 6 }}>
            <Paper p={0} component="section" aria-label="YAML" className="yaml-pane">
              <Suspense fallback={<Waiting />}>
                <YamlEditor
                  text={text}
                  label={`The document of ${service.name}, as YAML`}
                  onChange={draft.setText}
                  schema={schemas.service}
                  findings={findings}
                  goTo={goTo}
                  locked={!permission.may}
                />
              </Suspense>
              {findings.length > 0 && (
                <div className="yaml-findings">
                  <Findings
                    findings={findings}
                    onGo={({ line }) => setGoTo({ line: line ?? 1, time: Date.now() })}
                  />
                </div>
              )}
              <Text size="xs" c="dimmed" p="xs">
                Ctrl+Space completes, Ctrl+F searches, Esc and then Tab leaves the editor.
              </Text>
            </Paper>
          </Grid.Col>
        )}
      </Grid>
    </Stack>
  );
}

function SectionFields({ section, schemas }: { section: Section; schemas: OwnerSchemas }) {
  const path: Path = ["spec", section];
  const raw = schemaAt(schemas.all, path);
  if (!raw) return null;
  const shape = shapeOf(schemas.all, raw);
  return (
    <Stack gap="sm">
      <div>
        <Title order={2}>
          {{ callers: "How it is called", inbound: "On its own hosts", outbound: "What it calls" }[section]}
        </Title>
        <Text size="sm" c="dimmed">
          <Words text={shape.description ?? ""} />{" "}
          <Anchor href="/api/v1/schema/service.json" target="_blank" rel="noreferrer" size="sm">
            The schema
          </Anchor>
        </Text>
      </div>
      <Fields path={path} shape={shape} />
    </Stack>
  );
}

interface FormParts {
  draft: Draft;
  text: string;
  schemas: OwnerSchemas;
  findings: Finding[];
  showHelp: boolean;
  locked: boolean;
}

/** The form of a text, if it can be read. */
function useFormOf({ draft, text, schemas, findings, showHelp, locked }: FormParts): Form | undefined {
  const { name, effective } = useService();
  return useMemo(() => {
    const { parsed, setText } = draft;
    if (!parsed || parsed.error) return undefined;
    const edit = (change: () => string) => {
      try {
        setText(change());
      } catch (error) {
        announce(error instanceof Error ? error.message : String(error));
      }
    };
    return {
      service: name,
      schemas,
      value: parsed.value,
      effective: effective ?? undefined,
      findings,
      locked,
      showHelp,
      set: (path, value) => edit(() => setField(text, path, value)),
      remove: (path) => edit(() => removeField(text, path)),
      move: (list, from, to) => edit(() => moveItem(text, list, from, to)),
      rename: (path, to) => edit(() => renameKey(text, path, to)),
    };
  }, [draft, text, schemas, findings, showHelp, locked, name, effective]);
}

/** What Tower finds in the draft, a moment after one pauses; what cannot be read is found here. */
function useFindings(draft: Draft, text: string): Finding[] {
  const [settled] = useDebouncedValue(text, 500);
  const unreadable = draft.parsed?.error;
  const query = useQuery({
    queryKey: ["lint", draft.service, settled],
    queryFn: ({ signal }) => askPlan(draft.service, { document: settled }, signal),
    enabled: !unreadable,
    staleTime: 30_000,
    placeholderData: (before) => before,
  });
  return useMemo(() => {
    if (!unreadable) return query.data?.findings ?? [];
    const { line, message } = unreadable;
    return [{ code: "YAML", severity: "error", line, message }];
  }, [unreadable, query.data]);
}
