import { unifiedMergeView } from "@codemirror/merge";
import { EditorView } from "@codemirror/view";
import { useEffect, useRef } from "react";
import { common, readOnly } from "./setup";

interface Props {
  before: string;
  after: string;
  label: string;
}

/** Two texts as one, with what went and what came. */
export default function TextDiff({ before, after, label }: Props) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!place.current) return;
    const merge = unifiedMergeView({
      original: before,
      mergeControls: false,
      gutter: true,
      collapseUnchanged: { margin: 4, minSize: 8 },
    });
    const view = new EditorView({
      doc: after,
      extensions: [common(label), readOnly(), merge],
      parent: place.current,
    });
    return () => view.destroy();
  }, [before, after, label]);
  return <div ref={place} />;
}
