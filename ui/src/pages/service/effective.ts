import { stringify } from "yaml";
import type { Schemas } from "../../api/types";
import { get, type Json, type Path } from "../../lib/document";

export interface EffectiveField {
  field: string;
  value: string;
  origin?: Schemas["Origin"];
}

/** The fields of a document as it takes effect, by the paths of which it is known where they come from. */
export function flatten(effective: Schemas["Effective"]): EffectiveField[] {
  const document = effective.document as Json;
  return Object.entries(effective.provenance).map(([field, origin]) => {
    const value = get(document, toPath(field));
    const text =
      value === undefined || isEmpty(value)
        ? "as by default"
        : typeof value === "object"
          ? stringify(value).trim()
          : String(value);
    return { field: field.replace(/^spec\./, ""), value: text, origin };
  });
}

const isEmpty = (value: Json) =>
  typeof value === "object" && value !== null && !Array.isArray(value) && Object.keys(value).length === 0;

/** `spec.callers.routes[0].name` as a path. */
export function toPath(field: string): Path {
  return [...field.matchAll(/([^.[\]]+)|\[(\d+)\]/g)].map(([, name, index]) => name ?? Number(index));
}
