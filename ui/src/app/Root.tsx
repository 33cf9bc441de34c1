import { Modal } from "@mantine/core";
import { type QueryCache, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { LiveProvider } from "../api/live";
import { problemOf } from "../api/problem";
import { whoami } from "../api/session";
import { Waiting } from "../parts/Loaded";
import { ProblemAlert } from "../parts/ProblemAlert";
import { Layout } from "./Layout";
import { SignIn } from "./SignIn";

/** Pages for those who are signed in. If the session ends under a page, one signs in above it, and loses nothing. */
export function Root() {
  const session = useQuery(whoami);
  const [wasIn, setWasIn] = useState(false);
  useSessionEnd();
  useEffect(() => {
    if (session.data) setWasIn(true);
  }, [session.data]);

  if (session.data === undefined) {
    return session.error ? (
      <main>
        <ProblemAlert error={session.error} onRetry={() => void session.refetch()} />
      </main>
    ) : (
      <Waiting />
    );
  }
  if (session.data === null && !wasIn) return <SignIn />;
  return (
    <LiveProvider>
      <Layout />
      <Modal
        opened={session.data === null}
        onClose={() => undefined}
        withCloseButton={false}
        title="Your session has ended"
        closeOnEscape={false}
        closeOnClickOutside={false}
      >
        <SignIn embedded />
      </Modal>
    </LiveProvider>
  );
}

/** Any answer that says "nobody" is about the session. */
function useSessionEnd() {
  const client = useQueryClient();
  useEffect(
    () =>
      client.getQueryCache().subscribe((event: Parameters<Parameters<QueryCache["subscribe"]>[0]>[0]) => {
        if (event.type !== "updated" || event.action.type !== "error") return;
        if (problemOf(event.action.error).code === "unauthenticated")
          client.setQueryData(whoami.queryKey, null);
      }),
    [client],
  );
}
