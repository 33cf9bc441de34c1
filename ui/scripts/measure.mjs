// How quick the page is on a Tower with a large fleet, and whether its memory stays flat.
//
//   node scripts/measure.mjs http://127.0.0.1:5871 ADMIN_TOKEN_FILE [SERVICES]
//
// Give the Tower hosts before (`cargo run --example hosts`). It uploads a document for each of so many services
// (5000) while the page follows the activity, which is the stream of events that its memory is measured over.
import { readFileSync } from "node:fs";
import { chromium } from "@playwright/test";

const [tower, tokenFile, count = "5000"] = process.argv.slice(2);
const token = readFileSync(tokenFile, "utf8").trim();
const services = Number(count);
const ROUNDS = 3;

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--enable-precise-memory-info"],
});
const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
const page = await context.newPage();
await page.goto(tower);
await page.getByLabel("Token").first().fill(token);
await page.getByRole("button", { name: "Sign in" }).click();
await page.getByRole("heading", { level: 1 }).waitFor();

await memory();
await times();
await scrolling("/?search=", "Hosts");
await scrolling("/services", "Services");
await browser.close();

/** The heap of the activity page, while it follows one upload after the other. */
async function memory() {
  await page.goto(`${tower}/activity`);
  await page.getByRole("feed").waitFor();
  const devtools = await context.newCDPSession(page);
  const heap = async () => {
    await devtools.send("HeapProfiler.collectGarbage");
    const { usedSize } = await devtools.send("Runtime.getHeapUsage");
    return `${(usedSize / 1e6).toFixed(1)} MB`;
  };
  console.log(`heap of the activity page at first: ${await heap()}`);
  const begun = performance.now();
  let next = 0;
  let done = 0;
  const worker = async () => {
    while (next < services) {
      const name = `service-${String(next).padStart(4, "0")}`;
      next += 1;
      await upload(name);
      done += 1;
      if (done % Math.floor(services / 5) === 0) console.log(`  after ${done} events: ${await heap()}`);
    }
  };
  await Promise.all(Array.from({ length: 8 }, worker));
  const seconds = (performance.now() - begun) / 1000;
  await page.waitForTimeout(3000);
  console.log(`  at the end, ${(services / seconds).toFixed(0)} events a second: ${await heap()}`);
}

async function upload(name) {
  const document = `apiVersion: tower.mesh/v1
kind: MeshService
metadata: {name: ${name}, owner: team-${Number(name.slice(-4)) % 50}}
spec:
  callers:
    circuitBreaker: {maxRequests: 2000}
`;
  const response = await fetch(`${tower}/api/v1/services/${name}/versions`, {
    method: "POST",
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/yaml" },
    body: document,
  });
  if (!response.ok) throw new Error(`${name}: ${response.status} ${await response.text()}`);
}

/** Until what a page is for is there and can be used, from a cold start of the page: the median. */
async function times() {
  const pages = {
    "/": "section[aria-label='Hosts'] tbody tr.row",
    "/?by=zone": ".groups tbody tr",
    "/services": "section[aria-label='Services'] tbody tr.row",
    "/services/service-0001": "section[aria-label='Who has what']",
    "/services/service-0001/callers": "section[aria-label='Form'] fieldset",
    "/services/service-0001/versions": "input[type=radio]",
    "/services/service-0001/versions/1/activate": "section[aria-label='Affected hosts'] a",
    "/services/service-0001/endpoints": "section[aria-label='Endpoints'] tbody tr.row",
    "/activity": "[role=feed] article",
    "/hosts/host-00007": "[role=tabpanel]",
    "/hosts/host-00007?tab=served": "[role=tabpanel] section.code",
    "/sources": "section[aria-label^='Source ']",
  };
  for (const [path, marker] of Object.entries(pages)) {
    const took = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      await page.goto("about:blank");
      await page.goto(tower + path, { waitUntil: "commit" });
      await page.waitForFunction((marker) => document.querySelector(marker), marker, { polling: "raf" });
      took.push(await page.evaluate(() => performance.now()));
    }
    took.sort((a, b) => a - b);
    console.log(`${took[1].toFixed(0).padStart(6)} ms  ${path}`);
  }
}

/** The frames while a list is scrolled from its beginning as far as it goes. */
async function scrolling(path, label) {
  await page.goto(tower + path);
  await page.locator(`section[aria-label='${label}'] tbody tr.row`).first().waitFor();
  const frames = await page.locator(`section[aria-label='${label}']`).evaluate(async (scroller) => {
    const deltas = [];
    let last = await new Promise(requestAnimationFrame);
    for (let frame = 0; frame < 600; frame += 1) {
      scroller.scrollTop += 400;
      const now = await new Promise(requestAnimationFrame);
      deltas.push(now - last);
      last = now;
    }
    const rows = [...scroller.querySelectorAll("tbody tr.row")].at(-1)?.getAttribute("aria-rowindex");
    return { deltas: deltas.sort((a, b) => a - b), rows };
  });
  const at = (share) => frames.deltas[Math.floor((frames.deltas.length - 1) * share)].toFixed(0);
  console.log(
    `scrolling ${label} to row ${frames.rows}: frames of ${at(0.5)} ms, 95 % up to ${at(0.95)} ms, the longest ${at(1)} ms`,
  );
}
