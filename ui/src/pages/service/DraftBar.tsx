import { Alert, Badge, Button, Group, Modal, Text } from "@mantine/core";
import { useEffect } from "react";
import { useBlocker, useLocation } from "react-router";
import { link } from "../../lib/links";
import { Act } from "../../parts/Act";
import { To } from "../../parts/To";
import { useDraft } from "./draft";

/** That there is a draft, what can be done with it, and that it is not lost by mistake. */
export function DraftBar() {
  const draft = useDraft();
  const { pathname } = useLocation();
  const { service, base, changed, overtakenBy } = draft;
  if (!changed) return <Guard service={service} active={false} />;
  const inReview = pathname.endsWith("/review");
  return (
    <Alert color="indigo" mb="md" py="xs" role="status">
      <Guard service={service} active />
      <Group justify="space-between" gap="sm">
        <Group gap="sm">
          <Badge>Draft</Badge>
          <Text size="sm">
            {base === null ? "A first document" : `Changed from ${service}@${base}`}. Nothing is uploaded yet.
          </Text>
        </Group>
        <Group gap="xs">
          <Button variant="default" onClick={draft.discard}>
            Discard
          </Button>
          {!inReview && (
            <Act
              need={{ service }}
              unless={draft.parsed?.error && "The YAML cannot be read."}
              to={link.service(service, "review")}
            >
              Review the difference
            </Act>
          )}
        </Group>
      </Group>
      {overtakenBy !== undefined && (
        <Group gap="sm" mt="xs" role="alert">
          <Text size="sm" fw={600}>
            Somebody uploaded {service}@{overtakenBy} while you were editing.
          </Text>
          {base !== null && (
            <To to={link.diff(service, base, overtakenBy)} size="sm">
              What they changed
            </To>
          )}
          <Button variant="default" onClick={draft.rebase}>
            I have seen it; keep mine
          </Button>
        </Group>
      )}
    </Alert>
  );
}

/** Asks before a draft is left behind. */
function Guard({ service, active }: { service: string; active: boolean }) {
  const inside = link.service(service);
  const blocker = useBlocker(
    ({ nextLocation: { pathname } }) => active && pathname !== inside && !pathname.startsWith(`${inside}/`),
  );
  useEffect(() => {
    if (!active) return;
    const stay = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener("beforeunload", stay);
    return () => window.removeEventListener("beforeunload", stay);
  }, [active]);
  return (
    <Modal
      opened={blocker.state === "blocked"}
      onClose={() => blocker.reset?.()}
      title="The draft is not uploaded"
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <Text size="sm" mb="md">
        What you changed of {service} is lost if you leave now.
      </Text>
      <Group justify="flex-end" gap="xs">
        <Button variant="default" onClick={() => blocker.proceed?.()}>
          Leave and lose it
        </Button>
        <Button data-autofocus onClick={() => blocker.reset?.()}>
          Stay
        </Button>
      </Group>
    </Modal>
  );
}
