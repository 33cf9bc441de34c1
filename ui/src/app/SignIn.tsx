import { Button, Center, Group, Paper, PasswordInput, Stack, Text, Title } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { signIn, whoami } from "../api/session";
import { ProblemAlert } from "../parts/ProblemAlert";
import icon from "./icon.svg";

/** Signing in by token. The page keeps no token: Tower answers with a cookie that scripts cannot read. */
export function SignIn({ embedded = false }: { embedded?: boolean }) {
  const client = useQueryClient();
  const [token, setToken] = useState("");
  const signing = useMutation({
    mutationFn: () => signIn(token),
    onSuccess: async (who) => {
      setToken("");
      client.setQueryData(whoami.queryKey, who);
      await client.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== "whoami" });
    },
  });
  const form = (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        signing.mutate();
      }}
    >
      <Stack>
        <PasswordInput
          label="Token"
          description="It begins with tower_. It is sent to Tower once, and kept nowhere in this browser."
          required
          autoComplete="off"
          value={token}
          onChange={(event) => setToken(event.currentTarget.value)}
          data-autofocus
          autoFocus={!embedded}
        />
        {signing.error && <ProblemAlert error={signing.error} />}
        <Button type="submit" size="sm" loading={signing.isPending}>
          Sign in
        </Button>
        <Text size="sm" c="dimmed">
          An admin makes tokens: <span className="mono">pcloud token create NAME --role viewer</span>. The
          first one is in the file <span className="mono">admin.token</span> in Tower's data folder.
        </Text>
      </Stack>
    </form>
  );
  if (embedded) return form;
  return (
    <Center component="main" mih="100dvh" p="md">
      <title>Sign in · Tower</title>
      <Paper w={420} p="xl">
        <Group gap="sm" mb="lg">
          <img src={icon} alt="" width={28} height={28} />
          <Title order={1}>Sign in to Tower</Title>
        </Group>
        {form}
      </Paper>
    </Center>
  );
}
