import { Alert, Group, Paper, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useParams } from "react-router";
import { api, ok } from "../../api/client";
import { activation, isFinal, service } from "../../api/queries";
import type { Activation } from "../../api/types";
import { link } from "../../lib/links";
import { Act } from "../../parts/Act";
import { Facts } from "../../parts/Facts";
import { Loaded } from "../../parts/Loaded";
import { Page } from "../../parts/Page";
import { ReasonDialog } from "../../parts/ReasonDialog";
import { Status } from "../../parts/Status";
import { To } from "../../parts/To";
import { When } from "../../parts/When";
import { Rejected } from "../host/Rejected";
import { LackingHosts } from "./LackingHosts";
import { Progress } from "./Progress";
import { RefusedChange } from "./RefusedChange";
import { RollBackDialog } from "./RollBackDialog";
import { Steps } from "./Steps";

/** A release on its way to its hosts: step by step, host by host, with a stop and a way back. */
export function Component() {
  const { id = "" } = useParams();
  const query = useQuery(activation(id));
  const [dialog, setDialog] = useState<"stop" | "back">();
  const data = query.data;
  return (
    <Page
      title={`Activation ${id}`}
      heading={
        <Group gap="sm" component="span">
          <span className="break">{id}</span>
          {data && <Status state={data.state} />}
        </Group>
      }
      actions={data && <Actions activation={data} onDialog={setDialog} />}
    >
      <Loaded query={query}>{(activation) => <Landing activation={activation} />}</Loaded>
      {data && (
        <>
          <ReasonDialog
            opened={dialog === "stop"}
            onClose={() => setDialog(undefined)}
            title={`Stop ${id}`}
            confirm="Stop and take back"
            color="red"
            act={(reason) =>
              ok(api.POST("/api/v1/activations/{id}/abort", { params: { path: { id } }, body: { reason } }))
            }
            onDone={() => void query.refetch()}
          >
            <Text size="sm">
              Hosts that have {data.service}@{data.version} go back to what they had. Stopping always works.
            </Text>
          </ReasonDialog>
          <Back activation={data} opened={dialog === "back"} onClose={() => setDialog(undefined)} />
        </>
      )}
    </Page>
  );
}

interface ActionsProps {
  activation: Activation;
  onDialog: (dialog: "stop" | "back") => void;
}

function Actions({ activation, onDialog }: ActionsProps) {
  const need = { service: activation.service };
  return (
    <>
      <Act
        need={{ ...need, orElse: ["platform", "security"] }}
        unless={isFinal(activation) && "It has ended."}
        color="red"
        onClick={() => onDialog("stop")}
      >
        Stop …
      </Act>
      <Act
        need={need}
        unless={!isFinal(activation) && "It is under way: stop it, and its hosts go back."}
        variant="default"
        onClick={() => onDialog("back")}
      >
        Roll back …
      </Act>
    </>
  );
}

function Back({
  activation,
  opened,
  onClose,
}: {
  activation: Activation;
  opened: boolean;
  onClose: () => void;
}) {
  const { data } = useQuery({ ...service(activation.service), enabled: opened });
  return data ? <RollBackDialog service={data} opened={opened} onClose={onClose} /> : null;
}

const KINDS: Record<Activation["kind"], string> = {
  activate: "activation",
  traffic: "other weights",
  roll_back: "roll back",
};

function Landing({ activation }: { activation: Activation }) {
  const { service, version, rejection, detail, reason, ended_unix_ms, expires_unix_ms } = activation;
  return (
    <Stack>
      <Paper>
        <Facts
          facts={[
            [
              "Service",
              <To key="" to={link.service(service)}>
                {service}
              </To>,
            ],
            [
              "Version",
              version > 0 ? (
                <To key="" to={link.version(service, version)}>{`${service}@${version}`}</To>
              ) : (
                "no document"
              ),
            ],
            ["Kind", KINDS[activation.kind]],
            ["Audience", activation.audience],
            ["By", activation.author],
            ["Why", reason],
            ["Began", <When key="" ms={activation.started_unix_ms} exact />],
            ["Ended", ended_unix_ms && <When key="" ms={ended_unix_ms} exact />],
            ["Taken back by itself", expires_unix_ms && <When key="" ms={expires_unix_ms} />],
            [
              "Release",
              <span key="" className="mono">
                {activation.release}
              </span>,
            ],
          ]}
        />
      </Paper>
      {detail && (
        <Alert color={isFinal(activation) ? "gray" : "blue"} py="xs">
          <Text size="sm" className="break">
            {detail}
          </Text>
        </Alert>
      )}
      {rejection && (
        <>
          <Rejected service={service} rejection={rejection} release={activation.release} />
          <RefusedChange activation={activation} />
        </>
      )}
      <Paper component="section" aria-label="Steps">
        <Title order={2} mb="sm">
          Steps
        </Title>
        <Steps activation={activation} />
        <Title order={3} mt="md" mb={6}>
          Hosts of {isFinal(activation) ? "the last step" : "this step"}
        </Title>
        <Progress hosts={activation.hosts} />
      </Paper>
      <LackingHosts activation={activation} />
    </Stack>
  );
}
