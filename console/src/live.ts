// The fleet follows what changes: by the feed of changes, or where there is none, by
// reading everything again from time to time.

import { useEffect, useState } from "preact/hooks";
import { Failure, get } from "./api.ts";
import { keyOf } from "./root.ts";
import { Source, useSource } from "./source.ts";
import { tab } from "./storage.ts";
import { confirm, patchTrees, refresh, store } from "./store.ts";

const WAIT_SECONDS = 20;
const POLL_SECONDS = 30;
// A change of more trees than that is read as a whole.
const MANY = 60;
const SETTLE = 1_000;
// How long the service is left alone after a failure, or if it does not let us wait.
const REST = 5_000;
const MINUTE = 60_000;
const PAUSED = keyOf("paused");

export interface Live {
  paused: boolean;
  /** Whether there is a feed; without one, the fleet is read again every now and then. */
  hasFeed: boolean;
  /** Why nothing is followed at the moment; empty if it is. */
  trouble: string;
  /** How many times traits were seen to change. */
  traits: number;
  /** Up to when all changes are known. */
  asOf: Date;
}

export const live = new Source<Live>({
  paused: tab.get(PAUSED) === "true",
  hasFeed: true,
  trouble: "",
  traits: 0,
  asOf: new Date(0),
});

/** An entry of the journal, as far as the fleet needs it. */
interface Entry {
  type: string;
  root: string | null;
  roots?: string[];
}

interface Page {
  changes: Entry[];
  cursor: string;
}

let running: AbortController | null = null;

export function follow(): void {
  if (running || live.value.paused) return;
  running = new AbortController();
  void run(running.signal);
}

export function unfollow(): void {
  running?.abort();
  running = null;
}

export function setPaused(paused: boolean): void {
  tab.put(PAUSED, String(paused));
  live.change({ paused });
  if (paused) unfollow();
  else follow();
}

async function run(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const { fleet, reading, cursor } = store.value;
    if (!fleet || fleet.isPartial || reading !== null || document.hidden) await rest(300, signal);
    else if (cursor === null) await poll(signal);
    else await step(cursor, signal);
  }
}

/** Read everything again, unless somebody else has meanwhile. */
async function poll(signal: AbortSignal): Promise<void> {
  const { fleet } = store.value;
  live.change({ hasFeed: false, trouble: "" });
  await rest(POLL_SECONDS * 1000, signal);
  if (!signal.aborted && store.value.fleet === fleet && !document.hidden) await refresh();
}

async function step(cursor: string, signal: AbortSignal): Promise<void> {
  const begun = Date.now();
  // After trouble, nothing is waited for: an answer says that it is over.
  const wait = live.value.trouble ? 0 : WAIT_SECONDS;
  try {
    const page = await get<Page>(`ledger/v1/changes?since=${cursor}&wait=${wait}`, { signal });
    if (store.value.cursor !== cursor) return;
    live.change({ hasFeed: true, trouble: "", asOf: new Date() });
    if (page.changes.length) await take(page, signal);
    else {
      confirm(page.cursor);
      // The service has enough readers that wait.
      if (Date.now() - begun < (wait * 1000) / 2) await rest(REST, signal);
    }
  } catch (error) {
    if (!signal.aborted) await recover(error, signal);
  }
}

async function take({ changes, cursor }: Page, signal: AbortSignal): Promise<void> {
  const begun = performance.now();
  const roots = new Set(changes.flatMap(({ root, roots = [] }) => (root ? [root, ...roots] : roots)));
  if (changes.some(({ type }) => type.startsWith("traits."))) live.change({ traits: live.value.traits + 1 });
  const isGlobal = changes.some(({ type }) => type === "journal.gap" || type === "resource_class.renamed");
  if (isGlobal || roots.size > MANY) {
    await refresh();
    if (store.value.failure) await rest(REST, signal);
  } else await patchTrees(roots, cursor, signal);
  if (signal.aborted) return;
  // Where much changes, most of the time is the reader's.
  await rest(Math.max(SETTLE, 5 * (performance.now() - begun)), signal);
}

async function recover(error: unknown, signal: AbortSignal): Promise<void> {
  const status = error instanceof Failure ? error.status : 0;
  // No journal, or not for this user.
  if (status === 404 || status === 403) store.change({ cursor: null });
  else if (status === 410) {
    await refresh();
    if (store.value.failure) await rest(REST, signal);
  } else {
    live.change({ trouble: error instanceof Error ? error.message : String(error) });
    await rest(REST, signal);
  }
}

function rest(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

/** Return what changes every minute, for what the feed does not tell, and whenever a person has everything read again. */
export function useMinutes(): string {
  const { wishes } = useSource(store);
  const [minutes, setMinutes] = useState(0);
  useEffect(() => {
    const pass = () => document.hidden || live.value.paused || setMinutes((before) => before + 1);
    const timer = setInterval(pass, MINUTE);
    return () => clearInterval(timer);
  }, []);
  return `${wishes} ${minutes}`;
}
