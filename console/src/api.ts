// Requests to the public APIs, always of the service that served the console.

import { ROOT } from "./root.ts";
import { deny, expire, session, token } from "./session.ts";
import { Source } from "./source.ts";

// The documents that this program parses are those of this microversion.
const VERSION = "placement 1.39";

export class Failure extends Error {
  constructor(
    readonly what: string,
    readonly detail: string,
    readonly status = 0,
    readonly requestId = "",
  ) {
    super(detail);
  }

  /** The policy rule that did not allow it, if that was the reason. */
  get rule(): string {
    return this.status === 403 ? (/placement:[\w:]+/.exec(this.detail)?.[0] ?? "").replace(/:$/, "") : "";
  }
}

/** Return an error as something to show, wherever it came from. */
export function wrap(error: unknown, path: string): Failure {
  if (error instanceof Failure) return error;
  const reason = error instanceof Error ? error.message : String(error);
  return new Failure(path, `The answer could not be understood: ${reason}`);
}

interface Asked {
  method?: string;
  body?: unknown;
  accept?: string;
  /** The tag of an answer that is known: if it is still right, there is no other (304). */
  tag?: string;
  signal?: AbortSignal;
}

export async function ask(path: string, asked: Asked = {}): Promise<Response> {
  const mine = token();
  const headers: Record<string, string> = {
    Accept: asked.accept ?? "application/json",
    "OpenStack-API-Version": VERSION,
    "X-Auth-Token": mine,
  };
  if (asked.tag) headers["If-None-Match"] = asked.tag;
  if (asked.body !== undefined) headers["Content-Type"] = "application/json";
  const response = await insist(path, {
    method: asked.method ?? "GET",
    headers,
    body: asked.body === undefined ? undefined : JSON.stringify(asked.body),
    signal: asked.signal ?? null,
  });
  // Somebody else may have signed in: neither an answer nor a refusal is theirs.
  if (token() !== mine) throw new Failure(path, "The session of this request is over.", 401);
  if (response.status === 401) expire();
  if (!response.ok && !(asked.tag && response.status === 304)) {
    const failed = await failure(path, response);
    if (failed.rule && !isOfAnother(failed)) deny(failed.rule);
    throw failed;
  }
  return response;
}

/** The rule for what a project uses, which its members may see. */
export const USAGES = "placement:usages";

/** Whether only what another project uses was refused, which says nothing of the user's own. */
function isOfAnother({ what, rule }: Failure): boolean {
  return rule === USAGES && new URL(what, ROOT).searchParams.get("project_id") !== session.value.who?.project;
}

// How often a busy service is asked again, and how long at most it may want to be left alone.
const TRIES = 4;
const LONGEST_SECONDS = 10;

/** Send a request; again if the service is busy and says when to come back. */
async function insist(path: string, request: RequestInit): Promise<Response> {
  for (let tries = 1; ; tries += 1) {
    const response = await send(path, request);
    const seconds = Number(response.headers.get("retry-after") ?? NaN);
    if (response.status !== 503 || !(seconds <= LONGEST_SECONDS) || tries === TRIES) return response;
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
    request.signal?.throwIfAborted();
  }
}

export async function get<T>(path: string, asked: Asked = {}): Promise<T> {
  return (await (await ask(path, asked)).json()) as T;
}

/** Since when the service has not answered at all; null if it does. */
export const away = new Source<{ since: Date | null }>({ since: null });
const PROBE = "console/session";
const PROBE_SECONDS = 4;
let isProbing = false;

/** Find out whether the service answers anything, until it does. */
async function probe(): Promise<void> {
  if (isProbing) return;
  isProbing = true;
  while (!(await fetch(new URL(PROBE, ROOT), PLAIN).catch(() => null))) {
    away.change({ since: away.value.since ?? new Date() });
    await new Promise((resolve) => setTimeout(resolve, PROBE_SECONDS * 1000));
  }
  isProbing = false;
  if (away.value.since) away.change({ since: null });
}

// Without cookies, so that pages of other sites cannot use them.
const PLAIN = { credentials: "omit", redirect: "error", cache: "no-store" } as const;

export async function send(path: string, request: RequestInit): Promise<Response> {
  try {
    return await fetch(new URL(path, ROOT), { ...request, ...PLAIN });
  } catch (error) {
    if (error instanceof DOMException && ["AbortError", "TimeoutError"].includes(error.name)) throw error;
    void probe();
    throw new Failure(path, "The service does not answer.");
  }
}

export async function failure(path: string, response: Response): Promise<Failure> {
  const text = await response.text();
  let detail = `${response.status} ${response.statusText}`;
  try {
    const [error] = (JSON.parse(text) as { errors: { title: string; detail: string }[] }).errors;
    if (error) detail = error.detail.trim() || error.title;
  } catch {
    // Something in front of the service answered: only its status is known.
  }
  const id = response.headers.get("x-openstack-request-id") ?? "";
  return new Failure(path, detail, response.status, id);
}

/**
 * Read a document by lines, handing over each line as it arrives.
 *
 * Return its tag; null if it is still the one with the given tag, of which nothing is read.
 */
export async function readLines(
  path: string,
  take: (document: unknown) => void,
  asked: { signal?: AbortSignal; tag?: string } = {},
): Promise<string | null> {
  const response = await ask(path, { accept: "application/x-ndjson, application/json;q=0.5", ...asked });
  if (response.status === 304) return null;
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await readOn(path, reader);
    if (done) break;
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line) take(JSON.parse(line));
  }
  if (rest.trim()) take(JSON.parse(rest));
  return response.headers.get("etag") ?? "";
}

async function readOn(path: string, reader: ReadableStreamDefaultReader<string>) {
  try {
    return await reader.read();
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Failure(path, "The answer ended before it was complete.");
  }
}
