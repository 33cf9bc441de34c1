import { Alert, Button, Group, List, Stack, Text } from "@mantine/core";
import { CircleAlert } from "lucide-react";
import type { ReactNode } from "react";
import { problemOf } from "../api/problem";
import { Findings } from "./Findings";
import { When } from "./When";

interface Props {
  error: unknown;
  onRetry?: () => void;
  children?: ReactNode;
}

const APPLIED: Record<string, string> = {
  unknown: "It is not known whether it was done.",
  yes: "It was done all the same.",
};

/** A refusal with all that it says: what, which field, whose it is, and what to do next. */
export function ProblemAlert({ error, onRetry, children }: Props) {
  const problem = problemOf(error);
  const facts = [
    ["Object", problem.object],
    ["Field", problem.field],
    ["Owner", problem.owner],
    ["Code", problem.code],
  ].filter((fact): fact is [string, string] => Boolean(fact[1]));
  return (
    <Alert color="red" role="alert" title={problem.title} icon={<CircleAlert size={18} aria-hidden />}>
      <Stack gap="xs">
        <Text size="sm" className="break">
          {problem.detail}
        </Text>
        <Group gap="lg">
          {facts.map(([name, value]) => (
            <Text key={name} size="sm">
              {name} <span className="mono break">{value}</span>
            </Text>
          ))}
        </Group>
        {problem.next && <Text size="sm">Next: {problem.next}</Text>}
        {APPLIED[problem.applied] && <Text size="sm">{APPLIED[problem.applied]}</Text>}
        {problem.findings && problem.findings.length > 0 && <Findings findings={problem.findings} />}
        {problem.since && problem.since.length > 0 && (
          <div>
            <Text size="sm" fw={600}>
              Since then
            </Text>
            <List size="sm">
              {problem.since.map((since) => (
                <List.Item key={since.index}>
                  {since.author}: {since.command}
                  {since.reason && `, “${since.reason}”`} <When ms={since.time_unix_ms} />
                </List.Item>
              ))}
            </List>
          </div>
        )}
        {(onRetry || children) && (
          <Group gap="xs">
            {onRetry && (
              <Button variant="default" onClick={onRetry}>
                Try again
              </Button>
            )}
            {children}
          </Group>
        )}
      </Stack>
    </Alert>
  );
}
