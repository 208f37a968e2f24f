// Asks the daemon. Paths, queries, bodies and answers are typed by the OpenAPI document.
import type { paths } from "./schema";

type Method = "get" | "post" | "put" | "delete";
type PathsWith<M extends Method> = {
  [P in keyof paths]: paths[P] extends Record<M, { responses: unknown }> ? P : never;
}[keyof paths];
type Of<P extends keyof paths, M extends Method> = paths[P] extends Record<M, infer O> ? O : never;
type Json<T> = T extends { content: { "application/json": infer J } } ? J : never;
type Answers<O> = O extends { responses: infer R }
  ? { [S in keyof R]: S extends 200 | 201 | 202 ? R[S] : never }
  : never;
type AnswerOf<O> = Json<Answers<O>[keyof Answers<O>]>;
type BodyOf<O> = O extends { requestBody: infer B } ? Json<B> : undefined;
type QueryOf<O> = O extends { parameters: { query?: infer Q } } ? Q : never;
type PathOf<O> = O extends { parameters: { path: infer V } } ? V : undefined;

/** Why something was not done, as the daemon says it. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

/** What the log-in told, which changes bring. */
let csrf: string | undefined;
let onLoggedOut: () => void = () => undefined;

export function setCsrf(value: string | undefined): void {
  csrf = value;
}

/** Calls `then` when an answer says that the session has ended. */
export function whenLoggedOut(then: () => void): void {
  onLoggedOut = then;
}

function fill(path: string, values: Record<string, string | number> | undefined): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(values?.[name] ?? "")));
}

interface Options<O> {
  path?: PathOf<O>;
  query?: QueryOf<O>;
  body?: BodyOf<O>;
  signal?: AbortSignal;
}

async function ask<M extends Method, P extends PathsWith<M>>(
  method: M,
  path: P,
  options: Options<Of<P, M>> = {},
): Promise<AnswerOf<Of<P, M>>> {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(options.query ?? {})) {
    if (value !== undefined && value !== null) query.set(name, String(value));
  }
  const search = query.size > 0 ? `?${query}` : "";
  const headers: Record<string, string> = {};
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  if (method !== "get" && csrf !== undefined) headers["X-Convect-CSRF"] = csrf;
  const request: RequestInit = { method: method.toUpperCase(), headers };
  if (options.body !== undefined) request.body = JSON.stringify(options.body);
  if (options.signal !== undefined) request.signal = options.signal;
  const values = options.path as Record<string, string | number> | undefined;
  const answer = await fetch(fill(path, values) + search, request);
  const text = await answer.text();
  if (!answer.ok) {
    if (answer.status === 401 && path !== "/v1/login") onLoggedOut();
    let problem: { code?: string; message?: string } = {};
    try {
      problem = JSON.parse(text) as typeof problem;
    } catch {
      // What answered was no daemon; the status has to do.
    }
    throw new Problem(
      answer.status,
      problem.code ?? "unknown",
      problem.message ?? `the daemon answered with status ${answer.status}`,
    );
  }
  return (text === "" ? undefined : JSON.parse(text)) as AnswerOf<Of<P, M>>;
}

export const api = {
  get: <P extends PathsWith<"get">>(path: P, options?: Options<Of<P, "get">>) => ask("get", path, options),
  post: <P extends PathsWith<"post">>(path: P, options?: Options<Of<P, "post">>) =>
    ask("post", path, options),
  put: <P extends PathsWith<"put">>(path: P, options?: Options<Of<P, "put">>) => ask("put", path, options),
  delete: <P extends PathsWith<"delete">>(path: P, options?: Options<Of<P, "delete">>) =>
    ask("delete", path, options),
};
