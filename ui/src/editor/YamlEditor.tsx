import { autocompletion, completionKeymap } from "@codemirror/autocomplete";
import { type Diagnostic, lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { type EditorState, Text } from "@codemirror/state";
import { EditorView, keymap } from "@codemirror/view";
import { useEffect, useRef } from "react";
import type { Finding } from "../api/types";
import type { RawSchema } from "../lib/schema";
import { completions, help } from "./assist";
import { difference } from "./difference";
import { common, editing, readOnly } from "./setup";

interface Props {
  text: string;
  label: string;
  onChange: (text: string) => void;
  schema: RawSchema;
  findings: Finding[];
  /** Where to go, and a number that is another one each time. */
  goTo?: { line: number; time: number };
  locked: boolean;
}

/** The YAML of a draft. What forms change shows up here, and the other way round. */
export default function YamlEditor({ text, label, onChange, schema, findings, goTo, locked }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const editor = useRef<EditorView>(undefined);
  const tell = useRef(onChange);
  tell.current = onChange;
  const first = useRef(text);

  useEffect(() => {
    if (!place.current) return;
    const view = new EditorView({
      doc: first.current,
      parent: place.current,
      extensions: [
        common(label),
        locked ? readOnly() : editing(),
        autocompletion({ override: [completions(schema)], icons: false }),
        help(schema),
        lintGutter(),
        keymap.of([...completionKeymap, ...lintKeymap]),
        EditorView.lineWrapping,
        EditorView.updateListener.of((update) => {
          if (update.docChanged) tell.current(update.state.doc.toString());
        }),
      ],
    });
    editor.current = view;
    return () => {
      first.current = view.state.doc.toString();
      view.destroy();
    };
  }, [label, schema, locked]);

  useEffect(() => {
    const view = editor.current;
    if (!view) return;
    const change = difference(view.state.doc.toString(), text);
    if (change) view.dispatch({ changes: { ...change, insert: Text.of(change.insert.split("\n")) } });
  }, [text]);

  useEffect(() => {
    const view = editor.current;
    if (view)
      view.dispatch(
        setDiagnostics(
          view.state,
          findings.map((finding) => diagnostic(view.state, finding)),
        ),
      );
  }, [findings]);

  useEffect(() => {
    const view = editor.current;
    if (!view || !goTo) return;
    const line = view.state.doc.line(Math.min(goTo.line, view.state.doc.lines));
    view.dispatch({
      selection: { anchor: line.from },
      effects: EditorView.scrollIntoView(line.from, { y: "center" }),
    });
    view.focus();
  }, [goTo]);

  return <div ref={place} className="yaml-editor" />;
}

function diagnostic(state: EditorState, finding: Finding): Diagnostic {
  const line = state.doc.line(Math.max(1, Math.min(finding.line ?? 1, state.doc.lines)));
  const from = Math.min(line.from + Math.max(0, (finding.column ?? 1) - 1), line.to);
  const words = [
    finding.message,
    finding.owner && `Owner: ${finding.owner}.`,
    finding.next && `Next: ${finding.next}`,
  ];
  return {
    from,
    to: Math.max(from, line.to),
    severity: finding.severity,
    source: finding.code,
    message: words.filter(Boolean).join("\n"),
  };
}
