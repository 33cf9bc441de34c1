import { Stack, Text } from "@mantine/core";
import { CircleAlert, Info, TriangleAlert } from "lucide-react";
import type { Finding } from "../api/types";

const LOOKS = {
  error: { Icon: CircleAlert, color: "var(--mantine-color-error)", word: "Error" },
  warning: { Icon: TriangleAlert, color: "light-dark(#945c00, #ffc078)", word: "Warning" },
  info: { Icon: Info, color: "var(--mantine-color-dimmed)", word: "Note" },
};

interface Props {
  findings: Finding[];
  /** Goes to the place of a finding in the document. */
  onGo?: (finding: Finding) => void;
}

/** What is wrong or remarkable about a document: where, whose field, what to do. */
export function Findings({ findings, onGo }: Props) {
  return (
    <Stack gap={6} component="ul" m={0} p={0} style={{ listStyle: "none" }}>
      {findings.map((finding) => {
        const { Icon, color, word } = LOOKS[finding.severity];
        const place = finding.line ? `line ${finding.line}` : undefined;
        return (
          <li key={`${finding.code} ${finding.field} ${finding.line} ${finding.message}`}>
            <Text size="sm" component="div" className="break" style={{ display: "flex", gap: 6 }}>
              <Icon size={15} color={color} style={{ flexShrink: 0, marginTop: 3 }} aria-hidden />
              <span>
                <strong>{word}</strong> <span className="mono">{finding.code}</span>{" "}
                {finding.field && <span className="mono">{finding.field}: </span>}
                {finding.message}
                {finding.owner && ` (owner: ${finding.owner})`}
                {finding.next && ` Next: ${finding.next}.`}{" "}
                {place &&
                  (onGo ? (
                    <button type="button" className="link-button" onClick={() => onGo(finding)}>
                      {place}
                    </button>
                  ) : (
                    place
                  ))}
              </span>
            </Text>
          </li>
        );
      })}
    </Stack>
  );
}
