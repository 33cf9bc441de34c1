import { Button, Text } from "@mantine/core";
import { Link, useRouteError } from "react-router";
import { Page } from "../parts/Page";
import { ProblemAlert } from "../parts/ProblemAlert";

/** A page that failed, such as one whose code changed with a new Tower. */
export function Failed() {
  const error = useRouteError();
  return (
    <Page title="This page failed">
      <ProblemAlert error={error} onRetry={() => window.location.reload()} />
    </Page>
  );
}

export function NotFound() {
  return (
    <Page title="There is no such page">
      <Text>Perhaps the link is from another version of Tower.</Text>
      <Button component={Link} to="/" variant="default" w="fit-content">
        To the fleet
      </Button>
    </Page>
  );
}
