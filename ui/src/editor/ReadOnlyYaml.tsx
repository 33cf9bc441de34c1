import { EditorView } from "@codemirror/view";
import { useEffect, useRef } from "react";
import { common, readOnly } from "./setup";

/** A document to be read. */
export default function ReadOnlyYaml({ text, label }: { text: string; label: string }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!place.current) return;
    const view = new EditorView({
      doc: text,
      extensions: [common(label), readOnly()],
      parent: place.current,
    });
    return () => view.destroy();
  }, [text, label]);
  return <div ref={place} />;
}
