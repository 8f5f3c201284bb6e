// The fleet as last read: once for all views, in parts as they are needed.

import { useEffect } from "preact/hooks";
import { type Failure, get, readLines, wrap } from "./api.ts";
import { differing, gather, patch, type Fleet, type Provider } from "./fleet.ts";
import { Source, useSource } from "./source.ts";
import { Pool, readParts, readProvider, type Part } from "./wire.ts";

const BASE = "inventories,usages,aggregates,generation,parent";

export interface Store {
  fleet: Fleet | null;
  /** How many providers have been read, while reading goes on. */
  reading: number | null;
  failure: Failure | null;
  parts: ReadonlySet<Part>;
  /** Where the feed of changes goes on after the fleet; null if there is none. */
  cursor: string | null;
  /** When hosts were last seen to have changed, by UUID of the root. */
  changed: ReadonlyMap<string, Date>;
}

/** Return the parts that are to be read for those that are wanted: owners come with their allocations. */
function needed(): Part[] {
  return [...wanted].filter((part) => part !== "allocations" || !wanted.has("consumers"));
}

function isThere(part: Part): boolean {
  const { parts } = store.value;
  return parts.has(part) || (part === "allocations" && parts.has("consumers"));
}

// How often the number of providers that have been read is shown.
const STEP = 1000;
const FIRST_PICTURE = 5000;

const EMPTY: Store = { fleet: null, reading: null, failure: null, parts: new Set(), cursor: null, changed: new Map() };
// How long a change is marked.
const MARKED_SECONDS = 60;

export const store = new Source<Store>(EMPTY);
let wanted = new Set<Part>();
let running: AbortController | null = null;

/** Read everything again; the old fleet is shown until the new one is complete. */
export function refresh(): Promise<void> {
  return readAfter(async (signal) => {
    const { fleet, cursor } = await readBase(signal);
    const parts: Part[] = [];
    if (store.value.fleet && !store.value.fleet.isPartial) {
      for (const part of needed()) {
        await readPart(part, fleet, signal);
        parts.push(part);
      }
    }
    const before = store.value.fleet;
    const changed = before && !before.isPartial ? differing(before, fleet) : [];
    store.change({ fleet, cursor, parts: new Set(parts), changed: mark(changed, fleet.moment) });
  });
}

/** Return the marks with those of hosts that have just changed, without those that are old. */
function mark(roots: Iterable<string>, now: Date): ReadonlyMap<string, Date> {
  const oldest = now.getTime() - MARKED_SECONDS * 1000;
  const marks = [...store.value.changed].filter(([, at]) => at.getTime() >= oldest);
  return new Map([...marks, ...[...roots].map((root): [string, Date] => [root, now])]);
}

/** Read some trees again, and go on from a cursor; without effect if the fleet is read meanwhile. */
export async function patchTrees(roots: ReadonlySet<string>, cursor: string, signal: AbortSignal): Promise<void> {
  const { fleet, parts } = store.value;
  if (!fleet || !roots.size) return store.change({ cursor });
  const fields = [BASE, ...parts].join();
  const pool = new Pool();
  const read: Provider[] = [];
  for (const root of roots) {
    const path = `ledger/v1/fleet?in_tree=${root}&fields=${fields}`;
    const { providers } = await get<{ providers: unknown[] }>(path, { signal });
    for (const document of providers) read.push(readProvider(document, pool));
  }
  if (store.value.fleet !== fleet || store.value.reading !== null) return;
  const moment = new Date();
  const seen = new Set([...roots, ...read.map(({ root }) => root)]);
  const next = patch(fleet, seen, read, moment);
  // What the feed reports first may be in the picture already.
  const changed = differing(fleet, next);
  store.change(changed.size || isThere("allocations") ? { fleet: next, cursor, changed: mark(changed, moment) } : { cursor });
}

/** Forget marks that have become old. */
export function unmark(): void {
  const changed = mark([], new Date());
  if (changed.size < store.value.changed.size) store.change({ changed });
}

/** Read the fleet, then the wanted parts; this cancels any earlier reading. */
async function readAfter(begin: (signal: AbortSignal) => Promise<void>): Promise<void> {
  running?.abort();
  const { signal } = (running = new AbortController());
  store.change({ reading: 0, failure: null });
  try {
    await begin(signal);
    for (let part = missing(); part; part = missing()) {
      const fleet = store.value.fleet!;
      await readPart(part, fleet, signal);
      store.change({ fleet: { ...fleet }, parts: new Set([...store.value.parts, part]) });
    }
    store.change({ reading: null });
  } catch (error) {
    if (signal.aborted) return;
    // Part of a fleet is not a fleet.
    if (store.value.fleet?.isPartial) store.change({ fleet: null });
    store.change({ reading: null, failure: wrap(error, "ledger/v1/fleet") });
  }
}

function missing(): Part | undefined {
  return needed().find((part) => !isThere(part));
}

interface Read {
  fleet: Fleet;
  cursor: string | null;
}

async function readBase(signal: AbortSignal): Promise<Read> {
  const moment = new Date();
  const providers: Provider[] = [];
  const pool = new Pool();
  const isFirst = !store.value.fleet || store.value.fleet.isPartial;
  let next = FIRST_PICTURE;
  const take = (document: unknown) => {
    providers.push(readProvider(document, pool));
    if (providers.length % STEP === 0) store.change({ reading: providers.length });
    if (isFirst && providers.length === next) {
      // What is there is drawn; each picture has four times as many hosts as the one before.
      store.change({ fleet: gather(providers, moment, true) });
      next *= 4;
    }
  };
  const cursor = await readProviders(BASE, take, signal);
  return { fleet: gather(providers, moment), cursor };
}

/** Read all providers; return where the journal goes on after them, as the last line says. */
async function readProviders(
  fields: string,
  take: (document: unknown) => void,
  signal: AbortSignal,
): Promise<string | null> {
  let cursor: string | null = null;
  const takeProvider = (document: unknown) => {
    if ("cursor" in (document as object)) cursor = (document as { cursor: string }).cursor;
    else take(document);
  };
  await readLines(`ledger/v1/fleet?fields=${fields}`, takeProvider, signal);
  return cursor;
}

async function readPart(part: Part, fleet: Fleet, signal: AbortSignal): Promise<void> {
  let read = 0;
  const pool = new Pool();
  store.change({ reading: 0 });
  await readProviders(
    part,
    (document) => {
      readParts(document, part, fleet.providers, pool);
      if (++read % STEP === 0) store.change({ reading: read });
    },
    signal,
  );
}

export function forget(): void {
  running?.abort();
  wanted = new Set();
  store.change(EMPTY);
}

/** Return the fleet with these parts, reading those that are missing. */
export function useFleet(...parts: Part[]): Store & { ready: boolean } {
  const state = useSource(store);
  const asked = parts.join();
  useEffect(() => {
    parts.forEach((part) => wanted.add(part));
    const { fleet, reading, failure } = store.value;
    if (!fleet && reading === null && !failure) void refresh();
    else if (fleet && reading === null && !failure && missing()) void readAfter(async () => {});
  }, [asked, state.reading === null]);
  const ready = state.fleet !== null && parts.every(isThere);
  return { ...state, ready };
}
