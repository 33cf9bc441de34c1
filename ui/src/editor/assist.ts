import type { CompletionContext, CompletionResult } from "@codemirror/autocomplete";
import { hoverTooltip } from "@codemirror/view";
import { cursorAt } from "../lib/cursor";
import { type RawSchema, schemaAt, shapeOf } from "../lib/schema";

/** Completes names of fields, and values where there is a choice. */
export function completions(schema: RawSchema) {
  return (context: CompletionContext): CompletionResult | null => {
    const text = context.state.doc.toString();
    const word = context.matchBefore(/[\w.-]*/);
    if (!word || (word.from === word.to && !context.explicit)) return null;
    const { path, kind } = cursorAt(text, word.from);
    const raw = schemaAt(schema, path);
    if (!raw) return null;
    const shape = shapeOf(schema, raw);
    if (kind === "value") {
      const choices = shape.kind === "boolean" ? [{ value: "true" }, { value: "false" }] : shape.choices;
      return {
        from: word.from,
        options: choices.map((choice) => ({
          label: choice.value,
          type: "constant",
          info: "description" in choice ? choice.description : undefined,
        })),
      };
    }
    return {
      from: word.from,
      options: Object.entries(shape.fields).map(([name, field]) => {
        const inner = shapeOf(schema, field);
        return {
          label: name,
          type: "property",
          apply: `${name}: `,
          detail: inner.kind,
          info: inner.description,
        };
      }),
    };
  };
}

/** What a field means, when the pointer rests on it. */
export function help(schema: RawSchema) {
  return hoverTooltip((view, position) => {
    const line = view.state.doc.lineAt(position);
    const before = /[\w.-]*$/.exec(line.text.slice(0, position - line.from))?.[0] ?? "";
    const after = /^[\w.-]*(?=\s*:)/.exec(line.text.slice(position - line.from))?.[0];
    if (after === undefined) return null;
    const start = position - before.length;
    const { path, kind } = cursorAt(view.state.doc.toString(), start);
    const raw = kind === "key" && schemaAt(schema, [...path, before + after]);
    if (!raw) return null;
    const { description } = shapeOf(schema, raw);
    if (!description) return null;
    return {
      pos: start,
      end: position + after.length,
      create: () => {
        const dom = document.createElement("div");
        dom.className = "cm-help";
        dom.textContent = description;
        return { dom };
      },
    };
  });
}
