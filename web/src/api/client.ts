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

/** The CSRF token from the login, which changes have to send. */
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

/** An operation's path and query, filled in. */
function filled(path: string, options: { path?: unknown; query?: unknown }): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(options.query ?? {})) {
    if (value !== undefined && value !== null) query.set(name, String(value));
  }
  const search = query.size > 0 ? `?${query}` : "";
  return fill(path, options.path as Record<string, string | number> | undefined) + search;
}

interface Options<O> {
  path?: PathOf<O>;
  query?: QueryOf<O>;
  body?: BodyOf<O>;
  signal?: AbortSignal;
}

function problemOf(status: number, text: string): Problem {
  let problem: { code?: string; message?: string } = {};
  try {
    problem = JSON.parse(text) as typeof problem;
  } catch {
    // The response is not the daemon's: only its status is known.
  }
  const message = problem.message ?? `the daemon answered with status ${status}`;
  return new Problem(status, problem.code ?? "unknown", message);
}

/** The address of what only looks, for the browser itself to go to. */
export function addressOf<P extends PathsWith<"get">>(
  path: P,
  options: Pick<Options<Of<P, "get">>, "path" | "query">,
): string {
  return filled(path, options);
}

/** Sends a file as the body of a request, and reports the bytes sent. */
export function upload<P extends PathsWith<"post">>(
  path: P,
  options: Pick<Options<Of<P, "post">>, "path" | "query">,
  file: File,
  { onProgress, signal }: { onProgress: (sent: number) => void; signal: AbortSignal },
): Promise<void> {
  // fetch does not report progress.
  const request = new XMLHttpRequest();
  return new Promise((done, failed) => {
    request.open("POST", filled(path, options));
    request.setRequestHeader("Content-Type", "application/octet-stream");
    if (csrf !== undefined) request.setRequestHeader("X-Convect-CSRF", csrf);
    request.upload.addEventListener("progress", (event) => onProgress(event.loaded));
    request.addEventListener("load", () => {
      if (request.status < 300) return done();
      if (request.status === 401) onLoggedOut();
      failed(problemOf(request.status, request.responseText));
    });
    request.addEventListener("error", () => {
      const why = "the connection was closed without a response: see the daemon's jobs and log";
      failed(new Problem(0, "unreachable", why));
    });
    request.addEventListener("abort", () => failed(new Problem(0, "cancelled", "cancelled")));
    signal.addEventListener("abort", () => request.abort());
    request.send(file);
  });
}

async function ask<M extends Method, P extends PathsWith<M>>(
  method: M,
  path: P,
  options: Options<Of<P, M>> = {},
): Promise<AnswerOf<Of<P, M>>> {
  const headers: Record<string, string> = {};
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  if (method !== "get" && csrf !== undefined) headers["X-Convect-CSRF"] = csrf;
  const request: RequestInit = { method: method.toUpperCase(), headers };
  if (options.body !== undefined) request.body = JSON.stringify(options.body);
  if (options.signal !== undefined) request.signal = options.signal;
  const answer = await fetch(filled(path, options), request);
  const text = await answer.text();
  if (!answer.ok) {
    if (answer.status === 401 && path !== "/v1/login") onLoggedOut();
    throw problemOf(answer.status, text);
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
