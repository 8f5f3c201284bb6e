// The fleet as last read: once for all views, in parts as they are needed.

import { useEffect } from "preact/hooks";
import { type Failure, readLines, wrap } from "./api.ts";
import { gather, type Fleet, type Provider } from "./fleet.ts";
import { Source, useSource } from "./source.ts";
import { Pool, readParts, readProvider, type Part } from "./wire.ts";

const BASE = "inventories,usages,aggregates,generation,parent";

export interface Store {
  fleet: Fleet | null;
  /** How many providers have been read, while reading goes on. */
  reading: number | null;
  failure: Failure | null;
  parts: ReadonlySet<Part>;
}

const FIELDS: Record<Part, string> = { traits: "traits", allocations: "consumers" };

// How often the number of providers that have been read is shown.
const STEP = 1000;
const FIRST_PICTURE = 5000;

const EMPTY: Store = { fleet: null, reading: null, failure: null, parts: new Set() };

export const store = new Source<Store>(EMPTY);
let wanted = new Set<Part>();
let running: AbortController | null = null;

/** Read everything again; the old fleet is shown until the new one is complete. */
export function refresh(): Promise<void> {
  return readAfter(async (signal) => {
    const fleet = await readBase(signal);
    const parts: Part[] = [];
    if (store.value.fleet && !store.value.fleet.isPartial) {
      for (const part of wanted) {
        await readPart(part, fleet, signal);
        parts.push(part);
      }
    }
    store.change({ fleet, parts: new Set(parts) });
  });
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
  return [...wanted].find((part) => !store.value.parts.has(part));
}

async function readBase(signal: AbortSignal): Promise<Fleet> {
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
  await readProviders(BASE, take, signal);
  return gather(providers, moment);
}

/** Read all providers. The last line is where the journal goes on after them. */
function readProviders(fields: string, take: (document: unknown) => void, signal: AbortSignal): Promise<void> {
  const takeProvider = (document: unknown) => {
    if (!("cursor" in (document as object))) take(document);
  };
  return readLines(`ledger/v1/fleet?fields=${fields}`, takeProvider, signal);
}

async function readPart(part: Part, fleet: Fleet, signal: AbortSignal): Promise<void> {
  let read = 0;
  const pool = new Pool();
  store.change({ reading: 0 });
  await readProviders(
    FIELDS[part],
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
  const ready = state.fleet !== null && parts.every((part) => state.parts.has(part));
  return { ...state, ready };
}
