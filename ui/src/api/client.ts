import createClient, { type Middleware } from "openapi-fetch";
import { refusal } from "./problem";
import type { paths } from "./schema";

const SAFE = ["GET", "HEAD"];

/** The value that unsafe requests carry, so that no other site can make them; known after signing in. */
let csrf: string | undefined;

export function setCsrf(value: string | undefined) {
  csrf = value;
}

const unsafe: Middleware = {
  onRequest({ request }) {
    if (SAFE.includes(request.method)) return;
    if (csrf) request.headers.set("X-Tower-CSRF", csrf);
    if (!request.headers.has("Idempotency-Key")) {
      request.headers.set("Idempotency-Key", randomKey());
    }
  },
};

export const api = createClient<paths>({ baseUrl: "/" });
api.use(unsafe);

/** Unique, also where `crypto.randomUUID` is not to be had: on plain HTTP. */
export function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** The data of an answer; throws a `Refusal` if it is none. */
export async function ok<T>(asked: Promise<Answer<T>>): Promise<T> {
  const { data, error, response } = await asked;
  if (!response.ok || data === undefined) throw refusal(response.status, error);
  return data;
}

/** An index as the value of `If-Match`. */
export const ifMatch = (index: number) => `"${index}"`;
