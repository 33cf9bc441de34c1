// Pictures of every page, light and dark, in ui/screenshots, from a demo that it starts and fills a little.
//
//   node scripts/screenshots.mjs [--docs]      --docs: also the two of the README, into docs/
//
// It wants target/debug with the page in it (`make build`), and Debian's Chromium.
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { chromium } from "@playwright/test";

const root = join(import.meta.dirname, "..", "..");
const shots = join(import.meta.dirname, "..", "screenshots");
const documents = join(root, "docs", "examples");
const PATIENCE_MS = 60_000;

const demo = await startDemo();
try {
  await fill(demo);
  await photograph(demo);
} finally {
  demo.process.kill("SIGINT");
}

/** Starts the demo, and reads from what it prints where it is. */
async function startDemo() {
  const child = spawn(join(root, "target/debug/demo"), ["--ports", "ephemeral"], { cwd: root });
  child.stderr.pipe(process.stderr);
  let printed = "";
  for await (const line of createInterface({ input: child.stdout })) {
    printed += `${line}\n`;
    if (line.includes("Ctrl-C ends")) break;
  }
  const found = (pattern) => {
    const match = pattern.exec(printed);
    if (!match) throw new Error(`the demo did not say ${pattern}:\n${printed}`);
    return match[1];
  };
  return {
    process: child,
    tower: found(/PCLOUD_TOWER=(\S+)/),
    token: readFileSync(found(/PCLOUD_TOKEN_FILE=(\S+)/), "utf8").trim(),
    registrations: dirname(found(/registrations\s+edit (\S+)/)),
  };
}

/** Has something happen: other services, versions, a change that lands, other weights, and one that is refused. */
async function fill({ tower, token, registrations }) {
  const ask = async (method, path, body, type = "application/json") => {
    const headers = { Authorization: `Bearer ${token}`, "Content-Type": type };
    const text = type === "application/json" && body ? JSON.stringify(body) : body;
    const response = await fetch(`${tower}/api/v1${path}`, { method, headers, body: text });
    const answer = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${answer}`);
    return JSON.parse(answer);
  };
  const ended = async ({ activation }) => {
    const deadline = Date.now() + PATIENCE_MS;
    for (;;) {
      const { state } = await ask("GET", `/activations/${activation.id}`);
      if (state !== "progressing") return;
      if (Date.now() > deadline) throw new Error(`${activation.id} does not end`);
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  };
  for (const [place, name] of ["cart", "catalog", "checkout", "payments", "search"].entries()) {
    const endpoints = Array.from({ length: 3 + place }, (_, number) => {
      const release = number % 4 === 3 ? "canary" : "stable";
      const zone = `us-east-1${"abc"[number % 3]}`;
      return `- {address: 10.0.${place}.${number + 1}, port: 8080, zone: ${zone}, labels: {release: ${release}}}`;
    });
    writeFileSync(
      join(registrations, `${name}.yaml`),
      `service: ${name}\nendpoints:\n${endpoints.join("\n")}\n`,
    );
  }
  const hello = readFileSync(join(documents, "hello.yaml"), "utf8");
  const upload = (service, text, reason) =>
    ask(
      "POST",
      `/services/${service}/versions?reason=${encodeURIComponent(reason)}`,
      text,
      "application/yaml",
    );
  const activate = async (service, version, reason) =>
    ended(await ask("POST", `/services/${service}/activations`, { version, reason }));
  await upload("hello", hello, "first document");
  await activate("hello", 1, "from the old proxy");
  const weights = { stable: 90, canary: 10 };
  await ended(
    await ask("PUT", "/services/hello/traffic", { weights, ttl_seconds: 7200, reason: "try the canary" }),
  );
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    const { endpoints } = await ask("GET", "/services/payments/endpoints");
    if (endpoints.length > 0) break;
    if (Date.now() > deadline) throw new Error("payments is not discovered");
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  await upload("payments", hello.replaceAll("hello", "payments"), "first document");
  const refused = {
    apiVersion: "tower.mesh/v1",
    kind: "MeshService",
    metadata: { name: "payments" },
    spec: {
      patches: [
        {
          target: { kind: "Cluster", name: "payments" },
          merge: {
            transportSocket: {
              name: "company.sockets.traced",
              typedConfig: { "@type": "type.googleapis.com/google.protobuf.StringValue", value: "on" },
            },
          },
        },
      ],
    },
  };
  // A chart wants more than a point.
  while ((await ask("GET", "/latency")).probes.length < 6) {
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
  await ask("PUT", "/platform/payments?reason=trace%20sockets", refused);
  await activate("payments", 1, "with traced sockets");
}

async function photograph({ tower, token }) {
  mkdirSync(shots, { recursive: true });
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox"],
  });
  for (const colorScheme of ["light", "dark"]) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, colorScheme });
    const page = await context.newPage();
    const shoot = async (name) => {
      await page.waitForLoadState("load");
      await page.getByText("Asking Tower …").first().waitFor({ state: "hidden" });
      // Charts and editors are drawn once they are loaded.
      await page.waitForTimeout(800);
      await page.screenshot({ path: join(shots, `${name}-${colorScheme}.png`) });
    };
    await page.goto(tower);
    await shoot("sign-in");
    await page.getByLabel("Token").first().fill(token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { level: 1, name: "Fleet" }).waitFor();
    const read = (path) => page.evaluate(async (path) => (await fetch(`/api/v1${path}`)).json(), path);
    const activation = (await read("/services/payments/activations")).activations[0].id;
    const pages = {
      fleet: "/",
      "fleet-by-zone": "/?by=zone",
      services: "/services",
      service: "/services/hello",
      callers: "/services/hello/callers",
      inbound: "/services/hello/inbound",
      traffic: "/services/hello/traffic",
      endpoints: "/services/checkout/endpoints",
      versions: "/services/hello/versions",
      difference: "/services/hello/diff?from=1&to=2",
      activate: "/services/hello/versions/1/activate",
      activation: `/activations/${activation}`,
      activity: "/activity",
      host: "/hosts/demo",
      "host-serves": "/hosts/demo?tab=served&what=clusters",
      sources: "/sources",
    };
    for (const [name, path] of Object.entries(pages)) {
      await page.goto(tower + path);
      await shoot(name);
      if (
        process.argv.includes("--docs") &&
        colorScheme === "light" &&
        ["fleet", "activation"].includes(name)
      ) {
        const path = join(root, "docs", `page-${name}.jpg`);
        await page.screenshot({ path, type: "jpeg", quality: 70 });
      }
    }
    await context.close();
  }
  await browser.close();
  console.log(`in ${shots}`);
}
