import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, HighlightStyle, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { EditorState, type Extension } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { styleNonce } from "../lib/nonce";

// Colours by variables, so that the editor follows light and dark without being made anew.
const look = EditorView.theme({
  "&": { fontSize: "12.5px", color: "var(--mantine-color-text)", backgroundColor: "transparent" },
  "&.cm-focused": { outline: "2px solid var(--mantine-primary-color-filled)", outlineOffset: "-1px" },
  ".cm-scroller": { fontFamily: "var(--mantine-font-family-monospace)", lineHeight: "1.55" },
  ".cm-gutters": {
    backgroundColor: "transparent",
    color: "var(--mantine-color-dimmed)",
    border: "none",
  },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--mantine-color-default-hover)" },
  ".cm-cursor": { borderLeftColor: "var(--mantine-color-text)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "light-dark(#d0d9ff, #35406e) !important",
  },
  ".cm-tooltip, .cm-panels": {
    backgroundColor: "var(--mantine-color-body)",
    color: "var(--mantine-color-text)",
    border: "1px solid var(--mantine-color-default-border)",
    maxWidth: "460px",
  },
  ".cm-tooltip-autocomplete ul li[aria-selected]": {
    backgroundColor: "var(--mantine-primary-color-filled)",
    color: "#fff",
  },
  ".cm-help": { padding: "6px 10px", whiteSpace: "pre-wrap", fontSize: "12.5px" },
  ".cm-collapsedLines": {
    background: "var(--mantine-color-default-hover)",
    color: "var(--mantine-color-dimmed)",
  },
  // By default these are images in data: URLs, which the content security policy does not let in.
  ".cm-lint-marker": { width: "9px", height: "9px", marginTop: "6px", borderRadius: "2px" },
  ".cm-lint-marker-error": { content: "normal", background: "var(--mantine-color-red-filled)" },
  ".cm-lint-marker-warning": { content: "normal", background: "var(--mantine-color-yellow-filled)" },
  ".cm-lint-marker-info": { content: "normal", background: "var(--mantine-color-gray-filled)" },
  ".cm-lintRange": { backgroundImage: "none !important", textDecoration: "underline wavy 1px" },
  ".cm-lintRange-error": { textDecorationColor: "var(--mantine-color-red-filled)" },
  ".cm-lintRange-warning": { textDecorationColor: "var(--mantine-color-yellow-filled)" },
  ".cm-lintRange-info": { textDecorationColor: "var(--mantine-color-gray-filled)" },
  // Not every font has what these are by default.
  ".cm-collapsedLines::before, .cm-collapsedLines::after": { content: '"…" !important' },
  ".cm-changedLine, .cm-insertedLine": { backgroundColor: "light-dark(#e6ffec, #12261b) !important" },
  ".cm-deletedChunk, .cm-deletedLine": { backgroundColor: "light-dark(#ffebe9, #2d1618) !important" },
});

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "light-dark(#3b5bdb, #91a7ff)" },
  { tag: tags.string, color: "light-dark(#2b6e3f, #8ce99a)" },
  { tag: [tags.number, tags.bool, tags.keyword], color: "light-dark(#a61e4d, #faa2c1)" },
  { tag: tags.comment, color: "var(--mantine-color-dimmed)", fontStyle: "italic" },
]);

/** What every view of a document has. */
export function common(label: string): Extension {
  return [
    yaml(),
    syntaxHighlighting(colours),
    lineNumbers(),
    drawSelection(),
    bracketMatching(),
    highlightSelectionMatches(),
    keymap.of(searchKeymap),
    look,
    EditorView.cspNonce.of(styleNonce),
    EditorView.contentAttributes.of({ "aria-label": label }),
  ];
}

export function readOnly(): Extension {
  return [
    EditorState.readOnly.of(true),
    EditorView.editable.of(false),
    EditorView.contentAttributes.of({ tabindex: "0" }),
  ];
}

/** What a document that is edited has besides. Escape and then Tab leaves the editor by keyboard. */
export function editing(): Extension {
  return [
    history(),
    highlightActiveLine(),
    indentUnit.of("  "),
    EditorState.tabSize.of(2),
    keymap.of([...defaultKeymap, ...historyKeymap, indentWithTab]),
  ];
}
