import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";

const PROGRAM = join(
  import.meta.dirname,
  "..",
  "..",
  process.env.CARGO_TARGET_DIR ?? "target",
  "debug",
  "stand",
);

export interface Endpoint {
  upstream?: "alpha" | "beta";
  address?: string;
  labels?: Record<string, string>;
}

type Order =
  | { do: "proxy"; fault: "pass" | "freeze" | "cut" }
  | { do: "kill_tower" }
  | { do: "start_tower" }
  | { do: "register"; service: string; endpoints: Endpoint[] }
  | { do: "call"; host: string; requests: number };

/** A Tower behind a proxy, three Beacons with an Envoy each, and two upstreams; see tests/src/bin/stand. */
export class Stand {
  private constructor(
    private readonly process: ChildProcess,
    private readonly lines: AsyncIterator<string>,
    /** Where the page is, through the proxy. */
    readonly page: string,
    /** Tower itself. */
    readonly tower: string,
    /** The token of the first admin. */
    readonly admin: string,
  ) {}

  static async start(): Promise<Stand> {
    const process = spawn(PROGRAM, { stdio: ["pipe", "pipe", "inherit"] });
    if (!process.stdout) throw new Error("the stand has no output");
    const lines = createInterface({ input: process.stdout })[Symbol.asyncIterator]();
    const { page, tower, admin } = JSON.parse(await next(lines)) as Record<
      "page" | "tower" | "admin",
      string
    >;
    return new Stand(process, lines, page, tower, admin);
  }

  /** Everything ends with its standard input. */
  async end() {
    const ended = new Promise((resolve) => this.process.once("exit", resolve));
    this.process.stdin?.end();
    await ended;
  }

  async order(order: Order): Promise<Record<string, unknown>> {
    this.process.stdin?.write(`${JSON.stringify(order)}\n`);
    const answer = JSON.parse(await next(this.lines)) as Record<string, unknown>;
    if (answer.error) throw new Error(`${order.do}: ${answer.error}`);
    return answer;
  }

  /** Who answers requests to a host name through an Envoy. */
  async answers(host: string, requests = 10): Promise<string[]> {
    const { answers, failures } = await this.order({ do: "call", host, requests });
    return [...Object.keys(answers as object), ...Object.keys(failures as object)];
  }

  /** Asks Tower itself, as its admin unless somebody else is named; what is refused is thrown. */
  async ask(method: string, path: string, body?: object | string, token = this.admin) {
    const response = await fetch(`${this.tower}/api/v1${path}`, {
      method,
      headers: {
        Authorization: `Bearer ${token}`,
        "Content-Type": typeof body === "string" ? "application/yaml" : "application/json",
      },
      body: typeof body === "object" ? JSON.stringify(body) : body,
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text ? JSON.parse(text) : undefined;
  }

  /** A token of somebody new. */
  async token(name: string, roles: string[], services: string[] = []): Promise<string> {
    return (await this.ask("POST", "/tokens", { name, roles, services })).token;
  }

  /** A service whose stable upstream is alpha, and whose canary is beta, with a first version that all hosts have. */
  async service(name: string) {
    await this.order({
      do: "register",
      service: name,
      endpoints: [
        { upstream: "alpha", labels: { release: "stable" } },
        { upstream: "beta", labels: { release: "canary" } },
      ],
    });
    await this.ask("POST", `/services/${name}/versions`, document(name));
    await this.ask("POST", `/services/${name}/activations`, {
      version: 1,
      at_once: true,
      reason: "the first one",
    });
    await until(`${name}@1 is on all hosts`, async () => {
      const { activations } = await this.ask("GET", `/services/${name}/activations`);
      return activations[0].state === "succeeded";
    });
  }
}

export function document(service: string, timeout = "1s"): string {
  return `# How others call ${service}.
apiVersion: tower.mesh/v1
kind: MeshService
metadata: {name: ${service}, owner: ${service}-team}
spec:
  callers:
    subsets:
      stable: {release: stable}
      canary: {release: canary}
    routes:
    - name: default
      backendRefs:
      - {subset: stable, weight: 100}
      - {subset: canary, weight: 0}
      timeouts: {request: ${timeout}}
`;
}

/** Asks until it is so; what cannot be asked yet is not so yet. */
export async function until(what: string, ask: () => Promise<boolean>, patienceMs = 30_000) {
  const deadline = Date.now() + patienceMs;
  for (;;) {
    let why = "it is not so";
    try {
      if (await ask()) return;
    } catch (error) {
      why = String(error);
    }
    if (Date.now() > deadline) throw new Error(`not within ${patienceMs} ms: ${what}: ${why}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function next(lines: AsyncIterator<string>): Promise<string> {
  const { value, done } = await lines.next();
  if (done) throw new Error("the stand has ended");
  return value;
}
