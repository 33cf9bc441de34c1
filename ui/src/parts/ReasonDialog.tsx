import { Button, Group, Modal, Stack, Textarea } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { announce } from "../lib/announce";
import { ProblemAlert } from "./ProblemAlert";

interface Props<T> {
  opened: boolean;
  onClose: () => void;
  title: string;
  /** What it does, before one does it. */
  children: ReactNode;
  confirm: string;
  color?: string;
  reasonNeeded?: boolean;
  act: (reason: string | undefined) => Promise<T>;
  onDone?: (result: T) => void;
}

/** Asks once more before something is done, and for the reason that the activity log will tell. */
export function ReasonDialog<T>(props: Props<T>) {
  const { opened, onClose, title, children, confirm, color, reasonNeeded = false } = props;
  const [reason, setReason] = useState("");
  const doing = useMutation({
    mutationFn: () => props.act(reason.trim() || undefined),
    onSuccess: (result) => {
      announce(`Done: ${title}`);
      close();
      props.onDone?.(result);
    },
  });
  const close = () => {
    setReason("");
    doing.reset();
    onClose();
  };
  return (
    <Modal opened={opened} onClose={close} title={title} closeButtonProps={{ "aria-label": "Close" }}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          doing.mutate();
        }}
      >
        <Stack>
          <div>{children}</div>
          <Textarea
            label="Reason"
            description="Everybody reads it in the activity log."
            required={reasonNeeded}
            maxLength={500}
            value={reason}
            onChange={(event) => setReason(event.currentTarget.value)}
            data-autofocus
            autosize
            minRows={2}
          />
          {doing.error && <ProblemAlert error={doing.error} />}
          <Group justify="flex-end" gap="xs">
            <Button variant="default" onClick={close}>
              Cancel
            </Button>
            <Button type="submit" color={color} loading={doing.isPending}>
              {confirm}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
