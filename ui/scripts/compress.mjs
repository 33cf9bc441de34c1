// Packs what was built, once and as small as it gets: Tower hands out the packed files as they are.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const PACKED = /\.(?:js|css|svg|json|txt|map|webmanifest)$/;
const dist = join(import.meta.dirname, "..", "dist");

for (const name of readdirSync(dist, { recursive: true }).filter((name) => PACKED.test(name))) {
  const file = join(dist, name);
  const content = readFileSync(file);
  const brotli = brotliCompressSync(content, {
    params: {
      [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
      [constants.BROTLI_PARAM_SIZE_HINT]: content.length,
    },
  });
  for (const [ending, packed] of [
    [".br", brotli],
    [".gz", gzipSync(content, { level: 9 })],
  ]) {
    if (packed.length < content.length) writeFileSync(file + ending, packed);
  }
}
