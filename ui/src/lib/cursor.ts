import type { Path } from "./document";

export interface Cursor {
  /** Of the map that a key would be in, or of the field that a value would be of. Indices are all 0. */
  path: Path;
  kind: "key" | "value";
}

interface Line {
  /** Where the last dash is, if there is one. */
  dash?: number;
  /** Where the key is, or would be. */
  column: number;
  key?: string;
  /** Behind `key: `, up to the cursor. */
  value?: string;
}

/**
 * Where in a document a place of its text is. It goes by indentation, and not by parsing: while one is writing, the
 * text is hardly ever valid.
 */
export function cursorAt(text: string, offset: number): Cursor {
  const lines = text.slice(0, offset).split("\n");
  const here = lineOf(lines.at(-1) ?? "");
  const above = lines
    .slice(0, -1)
    .map(lineOf)
    .filter((line) => line.key !== undefined || line.dash !== undefined);
  const path = parents(here, above);
  if (here.key === undefined) return flow(path, here.value ?? "", "key");
  return flow([...path, here.key], here.value ?? "", "value");
}

function lineOf(text: string): Line {
  const match = /^(\s*)((?:-\s+)*)(?:("[^"]*"|'[^']*'|[^\s#:{}[\],'"-][^\s:{}[\],]*):(?:\s+|$))?(.*)$/.exec(
    text,
  );
  const [, space = "", dashes = "", quoted, rest = ""] = match ?? [];
  if (rest.startsWith("#") && quoted === undefined && dashes === "") return { column: space.length };
  return {
    column: space.length + dashes.length,
    dash: dashes ? space.length + dashes.trimEnd().length - 1 : undefined,
    key: quoted?.replace(/^["']|["']$/g, ""),
    value: rest,
  };
}

function parents(here: Line, above: Line[]): Path {
  const path: Path = [];
  let { column, dash } = here;
  for (let index = above.length - 1; index >= 0 && (column > 0 || dash !== undefined); index -= 1) {
    const line = above[index] as Line;
    if (dash !== undefined) {
      const isParent = line.dash === undefined ? line.column <= dash : line.column < dash;
      if (!isParent) continue;
      path.unshift(0);
    } else if (line.column === column && line.dash !== undefined) {
      dash = line.dash;
      continue;
    } else if (line.column >= column) continue;
    if (line.key !== undefined) path.unshift(line.key);
    column = line.column;
    dash = line.dash;
  }
  return path;
}

/** Goes on into `{}` and `[]` that are open before the cursor. */
function flow(path: Path, value: string, kind: Cursor["kind"]): Cursor {
  const open: { list: boolean; key?: string }[] = [];
  let word = "";
  for (const letter of value) {
    const inner = open.at(-1);
    if (letter === "{" || letter === "[") open.push({ list: letter === "[" });
    else if (letter === "}" || letter === "]") open.pop();
    else if (letter === "," && inner) inner.key = undefined;
    else if (letter === ":" && inner && !inner.list) inner.key = word.trim();
    word = /[{}[\],:]/.test(letter) ? "" : word + letter;
  }
  const last = open.at(-1);
  if (!last) return { path, kind };
  const within = open.flatMap<string | number>(({ list, key }) =>
    list ? [0] : key !== undefined ? [key] : [],
  );
  return { path: [...path, ...within], kind: last.list || last.key !== undefined ? "value" : "key" };
}
