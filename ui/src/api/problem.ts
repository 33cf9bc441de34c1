import type { Problem } from "./types";

/** A refusal by Tower, or a failure on the way to it, as something that can be thrown. */
export class Refusal extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail);
    this.name = "Refusal";
  }
}

/** What an answer that is not a success says; also if it is not from Tower, but from something in between. */
export function refusal(status: number, body: unknown): Refusal {
  if (typeof body === "object" && body !== null && "code" in body && "detail" in body) {
    return new Refusal(body as Problem);
  }
  return new Refusal({
    type: "urn:tower:problem:unavailable",
    title: "no answer from Tower",
    status,
    code: status === 401 ? "unauthenticated" : "unavailable",
    detail: `The answer, with status ${status}, is not one of Tower's.`,
    applied: "unknown",
    next: "Try again; if it stays so, look at what is between this page and Tower.",
  });
}

/** Any error as a problem, so that every page shows all of them in the same way. */
export function problemOf(error: unknown): Problem {
  if (error instanceof Refusal) return error.problem;
  const network = error instanceof TypeError;
  return {
    type: "urn:tower:problem:unavailable",
    title: network ? "Tower cannot be reached" : "this page failed",
    status: 0,
    code: network ? "unavailable" : "internal",
    detail: error instanceof Error ? error.message : String(error),
    applied: "unknown",
    next: network ? "It is asked again by itself as soon as it answers." : "Load the page again.",
  };
}
