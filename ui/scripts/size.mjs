// What a browser loads before the first page shows: index.html, and the scripts and styles that it names.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const LIMIT = 300_000;
const dist = join(import.meta.dirname, "..", "dist");
const html = readFileSync(join(dist, "index.html"));
const named = [...html.toString().matchAll(/(?:src|href)="\/([^"]+\.(?:js|css))"/g)].map((match) => match[1]);
let total = gzipSync(html).length;
for (const file of named) {
  const size = gzipSync(readFileSync(join(dist, file))).length;
  total += size;
  console.log(`${(size / 1000).toFixed(1).padStart(8)} kB  ${file}`);
}
console.log(`${(total / 1000).toFixed(1).padStart(8)} kB  gzipped in all; the limit is ${LIMIT / 1000} kB`);
if (total > LIMIT) {
  console.error("The initial load is too large: load something lazily.");
  process.exit(1);
}
