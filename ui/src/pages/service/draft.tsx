import { useQuery } from "@tanstack/react-query";
import { createContext, type ReactNode, useCallback, useContext, useMemo, useState } from "react";
import { document } from "../../api/queries";
import type { ServiceDetail } from "../../api/types";
import { type Read, read, template } from "../../lib/document";

interface Start {
  /** The version that the draft began from; null if the service had none. */
  base: number | null;
  /** The last version at that time, and the index of the service: what it is changed from. */
  latest: number | null;
  index: number;
  text: string;
}

export interface Draft {
  service: string;
  base: number | null;
  baseText: string | undefined;
  /** The document as it is edited; undefined while the version is on its way. */
  text: string | undefined;
  parsed: Read | undefined;
  changed: boolean;
  error: unknown;
  /** Somebody else uploaded a version since the draft was begun. */
  overtakenBy: number | undefined;
  /** What the upload names as the state that it is about. */
  index: number;
  setText: (text: string) => void;
  discard: () => void;
  /** What others did is known, and does not matter. */
  rebase: () => void;
  startFrom: (version: number) => void;
}

const Context = createContext<Draft | undefined>(undefined);

export function useDraft(): Draft {
  const draft = useContext(Context);
  if (!draft) throw new Error("outside of DraftProvider");
  return draft;
}

/** A document that is being edited: forms and YAML are two views of its text. */
export function DraftProvider({ service, children }: { service: ServiceDetail; children: ReactNode }) {
  const { name, index } = service;
  const latest = service.latest_version ?? null;
  const [from, setFrom] = useState<number>();
  const [start, setStart] = useState<Start>();
  const usual = from ?? service.active?.version ?? latest;
  const base = start ? start.base : usual;
  const stored = useQuery({ ...document(name, base ?? 0), enabled: base !== null });
  const baseText = base === null ? template(name, service.owner ?? "OWNER") : stored.data;
  const text = start?.text ?? baseText;

  const setText = useCallback(
    (after: string) =>
      setStart((before) => (before ? { ...before, text: after } : { base, latest, index, text: after })),
    [base, latest, index],
  );
  const draft = useMemo<Draft>(() => {
    const changed = start !== undefined && start.text !== baseText;
    const overtaken = changed && start.latest !== latest ? (latest ?? undefined) : undefined;
    return {
      service: name,
      base,
      baseText,
      text,
      parsed: text === undefined ? undefined : read(text),
      changed,
      error: stored.error,
      overtakenBy: overtaken,
      // What else happened to the service, such as steps of an activation, is no edit of it.
      index: overtaken === undefined ? index : (start?.index ?? index),
      setText,
      discard: () => setStart(undefined),
      rebase: () => setStart((before) => before && { ...before, latest, index }),
      startFrom: (version) => {
        setStart(undefined);
        setFrom(version);
      },
    };
  }, [name, base, baseText, text, stored.error, start, latest, index, setText]);
  return <Context value={draft}>{children}</Context>;
}
