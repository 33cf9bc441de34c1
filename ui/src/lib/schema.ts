import type { Path } from "./document";

/** The part of JSON Schema that the schema of documents uses. */
export interface RawSchema {
  $ref?: string;
  $defs?: Record<string, RawSchema>;
  type?: string | string[];
  description?: string;
  properties?: Record<string, RawSchema>;
  additionalProperties?: boolean | RawSchema;
  required?: string[];
  items?: RawSchema;
  anyOf?: RawSchema[];
  oneOf?: RawSchema[];
  enum?: unknown[];
  const?: unknown;
  pattern?: string;
  minimum?: number;
  maximum?: number;
}

export interface Choice {
  value: string;
  description?: string;
}

/** A field's schema without references and alternatives. */
export interface Shape {
  kind: "object" | "map" | "list" | "choice" | "string" | "integer" | "number" | "boolean" | "any";
  description?: string;
  fields: Record<string, RawSchema>;
  required: string[];
  /** Of a list's elements or a map's values. */
  item?: RawSchema;
  choices: Choice[];
  pattern?: string;
  minimum?: number;
  maximum?: number;
}

export function shapeOf(root: RawSchema, raw: RawSchema): Shape {
  const description = raw.description;
  const schema = settle(root, raw);
  const base: Shape = {
    kind: "any",
    description: description ?? schema.description,
    fields: schema.properties ?? {},
    required: schema.required ?? [],
    item: undefined,
    choices: choices(schema),
    pattern: schema.pattern,
    minimum: schema.minimum,
    maximum: schema.maximum,
  };
  if (base.choices.length > 0) return { ...base, kind: "choice" };
  const type = [schema.type].flat().find((type) => type !== "null");
  switch (type) {
    case "object":
      if (typeof schema.additionalProperties === "object") {
        return { ...base, kind: "map", item: schema.additionalProperties };
      }
      return schema.properties || schema.additionalProperties === false ? { ...base, kind: "object" } : base;
    case "array":
      return { ...base, kind: "list", item: schema.items };
    case "string":
    case "integer":
    case "number":
    case "boolean":
      return { ...base, kind: type };
    default:
      return base;
  }
}

/** The schema of the field at a path; nothing if there may be no such field. */
export function schemaAt(root: RawSchema, path: Path): RawSchema | undefined {
  let here: RawSchema | undefined = root;
  for (const key of path) {
    if (!here) return undefined;
    const shape = shapeOf(root, here);
    if (shape.kind === "object") here = shape.fields[String(key)];
    else if (shape.kind === "map" || shape.kind === "list") here = shape.item;
    else return undefined;
  }
  return here;
}

export interface OwnerSchemas {
  all: RawSchema;
  service: RawSchema;
  platform: RawSchema;
  security: RawSchema;
}

export type Owner = "service" | "platform" | "security";

/** Whose a field is: the service's, if it may write it; else whoever may. */
export function ownerOf(schemas: OwnerSchemas, path: Path): Owner {
  if (schemaAt(schemas.service, path)) return "service";
  return schemaAt(schemas.security, path) ? "security" : "platform";
}

function settle(root: RawSchema, raw: RawSchema): RawSchema {
  if (raw.$ref) return settle(root, root.$defs?.[raw.$ref.replace("#/$defs/", "")] ?? {});
  const other = raw.anyOf?.find((option) => option.type !== "null");
  return other ? settle(root, other) : raw;
}

function choices(schema: RawSchema): Choice[] {
  const named = schema.oneOf?.filter((option) => typeof option.const === "string");
  if (named && named.length > 0) {
    return named.map(({ const: value, description }) => ({ value: String(value), description }));
  }
  const listed = schema.enum ?? (schema.const === undefined ? [] : [schema.const]);
  return listed.filter((value) => typeof value === "string").map((value) => ({ value }));
}
