import { Document, isAlias, isMap, isScalar, isSeq, parseDocument, Scalar } from "yaml";

/** Where a field is: `["spec", "callers", "routes", 0, "name"]`. */
export type Path = (string | number)[];

export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

/** What a text says, or why it cannot be read. */
export type Read =
  | { value: Json; error?: undefined }
  | { error: { message: string; line: number }; value?: undefined };

export function read(text: string): Read {
  const doc = parseDocument(text, { prettyErrors: false });
  const [error] = doc.errors;
  if (error) {
    const line = text.slice(0, error.pos[0]).split("\n").length;
    return { error: { message: error.message, line } };
  }
  try {
    return { value: doc.toJS({ maxAliasCount: 100 }) as Json };
  } catch (error) {
    return { error: { message: error instanceof Error ? error.message : String(error), line: 1 } };
  }
}

export function get(value: Json | undefined, path: Path): Json | undefined {
  let here: Json | undefined = value;
  for (const key of path) {
    if (here === null || typeof here !== "object") return undefined;
    here = Array.isArray(here) ? here[Number(key)] : here[key];
  }
  return here;
}

/** As findings and changes write it: `spec.callers.routes[0].name`. */
export function pathName(path: Path): string {
  return path.reduce<string>((name, key) => {
    if (typeof key === "number") return `${name}[${key}]`;
    return name ? `${name}.${key}` : key;
  }, "");
}

/**
 * The text with another value at a place. Comments, order and quotes stay; where one scalar takes the place of
 * another, everything else stays byte by byte.
 */
export function setField(text: string, path: Path, value: Json): string {
  const doc = parseDocument(text);
  const node = doc.getIn(path, true);
  if (isScalar(node) && node.range && !node.anchor && !isCollection(value) && !isBlock(node)) {
    const [start, end] = node.range;
    if (end > start) return text.slice(0, start) + scalar(value, node.type) + text.slice(end);
  }
  put(doc, path, value);
  return doc.toString(manner(text));
}

/** The text without a field, and without what is empty without it. */
export function removeField(text: string, path: Path): string {
  const doc = parseDocument(text);
  doc.deleteIn(path);
  for (let above = path.slice(0, -1); above.length > 1; above = above.slice(0, -1)) {
    const node = doc.getIn(above, true);
    if (!((isMap(node) || isSeq(node)) && node.items.length === 0)) break;
    doc.deleteIn(above);
  }
  return doc.toString(manner(text));
}

/** The text with two elements of a list in each other's place. */
export function moveItem(text: string, list: Path, from: number, to: number): string {
  const doc = parseDocument(text);
  const node = doc.getIn(list, true);
  if (!isSeq(node) || to < 0 || to >= node.items.length) return text;
  const [item] = node.items.splice(from, 1);
  node.items.splice(to, 0, item);
  return doc.toString(manner(text));
}

/** The text with another name for a key of a map, in the same place. */
export function renameKey(text: string, path: Path, name: string): string {
  const doc = parseDocument(text);
  const map = doc.getIn(path.slice(0, -1), true);
  const key = String(path.at(-1));
  if (!isMap(map) || map.has(name)) return text;
  const pair = map.items.find((item) => String(isScalar(item.key) ? item.key.value : item.key) === key);
  if (!pair) return text;
  pair.key = doc.createNode(name);
  return doc.toString(manner(text));
}

/** What a service without a document begins with. */
export function template(service: string, owner: string): string {
  const doc = new Document({
    apiVersion: "tower.mesh/v1",
    kind: "MeshService",
    metadata: { name: service, owner },
    spec: {},
  });
  return doc.toString();
}

function isCollection(value: Json): boolean {
  return typeof value === "object" && value !== null;
}

function isBlock(node: Scalar): boolean {
  return node.type === Scalar.BLOCK_FOLDED || node.type === Scalar.BLOCK_LITERAL;
}

/** A scalar as it may stand anywhere, also within `{}` and `[]`. */
function scalar(value: Json, like: Scalar["type"]): string {
  const node = new Scalar(value);
  const quoted = like === Scalar.QUOTE_DOUBLE || like === Scalar.QUOTE_SINGLE;
  if (typeof value === "string" && quoted) node.type = like;
  const doc = new Document([node]);
  if (isSeq(doc.contents)) doc.contents.flow = true;
  return doc.toString({ lineWidth: 0, flowCollectionPadding: false }).trim().slice(1, -1);
}

/** Sets a value, also where the path leads through nothing: `spec:` without a value. */
function put(doc: ReturnType<typeof parseDocument>, path: Path, value: Json) {
  for (let length = 1; length < path.length; length += 1) {
    const above = path.slice(0, length);
    const node = doc.getIn(above, true);
    if (isAlias(node)) throw new Error(`${pathName(above)} is an alias; edit it in the YAML`);
    if (!isScalar(node) || node.value !== null) continue;
    const within = path
      .slice(length)
      .reduceRight<Json>((inner, key) => (typeof key === "number" ? [inner] : { [key]: inner }), value);
    doc.setIn(above, doc.createNode(within));
    return;
  }
  doc.setIn(path, doc.createNode(value));
}

/** How the text is written, so that what is written anew looks like it. */
function manner(text: string) {
  return {
    lineWidth: 0,
    indentSeq: !/^( *)[^\s#-][^\n]*:[ \t]*\n\1- /m.test(text),
    flowCollectionPadding: /[{[] \S/.test(text),
  };
}
