import type { Finding, Schemas } from "../../../../api/types";
import { get, type Json, type Path, pathName } from "../../../../lib/document";
import { type RawSchema, type Shape, shapeOf } from "../../../../lib/schema";

export type Parsed = { value: Json; error?: undefined } | { error: string; value?: undefined };

/** What somebody wrote into a field, as its type wants it. */
export function parse(shape: Shape, text: string): Parsed {
  if (shape.kind === "integer" || shape.kind === "number") {
    const value = Number(text);
    const whole = shape.kind === "integer";
    if (text.trim() === "" || !Number.isFinite(value) || (whole && !Number.isInteger(value))) {
      return { error: whole ? "It is a whole number." : "It is a number." };
    }
    if (shape.minimum !== undefined && value < shape.minimum)
      return { error: `It is at least ${shape.minimum}.` };
    if (shape.maximum !== undefined && value > shape.maximum)
      return { error: `It is at most ${shape.maximum}.` };
    return { value };
  }
  if (shape.pattern && !new RegExp(shape.pattern, "u").test(text)) {
    return { error: shape.description?.split("\n")[0] ?? "It is written in another way." };
  }
  return { value: text };
}

/** What a new field begins with: the least that its schema wants. */
export function blank(root: RawSchema, raw: RawSchema): Json {
  const shape = shapeOf(root, raw);
  switch (shape.kind) {
    case "list":
      return [];
    case "object":
      return Object.fromEntries(
        shape.required.map((name) => [name, blank(root, shape.fields[name] ?? {})] as const),
      );
    case "choice":
      return shape.choices[0]?.value ?? "";
    case "integer":
    case "number":
      return Math.max(shape.minimum ?? 0, 1);
    case "boolean":
      return true;
    case "string":
      return shape.pattern?.includes("ms") ? "1s" : "";
    default:
      return {};
  }
}

/** A name that no key of a map and no element of a list has. */
export function freshName(base: string, taken: string[]): string {
  if (!taken.includes(base)) return base;
  let number = 2;
  while (taken.includes(`${base}-${number}`)) number += 1;
  return `${base}-${number}`;
}

export const isScalarKind = (shape: Shape) => !["object", "map", "list", "any"].includes(shape.kind);

export function keysOf(value: Json | undefined): string[] {
  return value && typeof value === "object" && !Array.isArray(value) ? Object.keys(value) : [];
}

/** Findings about a field itself. */
export function findingsAt(findings: Finding[], path: Path): string | undefined {
  const name = pathName(path);
  const found = findings.filter(({ field, severity }) => field === name && severity !== "info");
  return found.length > 0 ? found.map(({ message }) => message).join(" ") : undefined;
}

/** A value that takes effect though the document does not say it: by whom, and what. */
export function inherited(effective: Schemas["Effective"] | undefined, path: Path) {
  if (!effective) return undefined;
  const value = get(effective.document as Json, path);
  if (value === undefined || value === null) return undefined;
  const name = pathName(path);
  const [, origin] =
    Object.entries(effective.provenance).find(
      ([field]) => field === name || field.startsWith(`${name}.`) || name.startsWith(`${field}.`),
    ) ?? [];
  return origin && origin.owner !== "service" ? { value, origin } : undefined;
}
