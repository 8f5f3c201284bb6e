// The fleet as last read: once for all views, in parts as they are needed.

import { useEffect } from "preact/hooks";
import { type Failure, get, readLines, wrap } from "./api.ts";
import { differing, gather, patch, type Fleet, type Provider } from "./fleet.ts";
import { forgetNames, keepNames, type Named } from "./name.ts";
import { Source, useSource } from "./source.ts";
import { readParts, readProvider, Values, type Part } from "./wire.ts";

const BASE = "inventories,usages,aggregates,generation,parent";

export interface Store {
  fleet: Fleet | null;
  /** How many providers have been read, while reading goes on. */
  reading: number | null;
  failure: Failure | null;
  parts: ReadonlySet<Part>;
  /** Where the feed of changes goes on after the fleet; null if there is none. */
  cursor: string | null;
  /** How many times everything has been read, and how many times a person wanted that. */
  refreshes: number;
  wishes: number;
  /** When hosts were last seen to have changed, by UUID of the root. */
  changed: ReadonlyMap<string, Date>;
}

// How often the number of providers that have been read is shown.
const STEP = 1000;
const FIRST_PICTURE = 5000;

const EMPTY: Store = { fleet: null, reading: null, failure: null, parts: new Set(), cursor: null, refreshes: 0, wishes: 0, changed: new Map() };
// How long a change is marked.
const MARKED_SECONDS = 60;

export const store = new Source<Store>(EMPTY);
let wanted = new Set<Part>();
/** The tags of answers, by their fields. */
type Tags = Record<string, string>;
// Of those that the fleet is made of.
let tags: Tags = {};
let running: AbortController | null = null;

/** Read the names; without them, or for those who may not see them, there are UUIDs. */
export async function readNames(): Promise<void> {
  try {
    keepNames(await get<Record<Named, Record<string, string>>>("ledger/v1/names"));
  } catch {
    // What was known still is.
  }
}

/**
 * Read everything again; the old fleet is shown until the new one is complete.
 *
 * What the service says is still the same is kept.
 */
export function refresh(): Promise<void> {
  void readNames();
  return readAfter(async (signal) => {
    const before = store.value.fleet?.isPartial ? null : store.value.fleet;
    const moment = new Date();
    const known = before ? tags : {};
    const next: Tags = { ...known };
    const read = await readBase(signal, known, next);
    const parts = new Set<Part>(read ? [] : store.value.parts);
    let fleet = read?.fleet ?? null;
    // Parts are written into providers, and the old fleet is still shown.
    const target = () => (fleet ??= copy(before!, moment));
    for (const part of before ? wanted : []) {
      await readPart(part, target, signal, !read && parts.has(part) ? known : {}, next);
      parts.add(part);
    }
    tags = next;
    const changed = before && fleet ? differing(before, fleet) : [];
    const { cursor, refreshes } = store.value;
    store.change({
      fleet: fleet ?? { ...before!, moment },
      cursor: read ? read.cursor : cursor,
      refreshes: refreshes + 1,
      parts,
      changed: mark(changed, moment),
    });
  });
}

/** Read everything again because a person wants it. */
export function readAgain(): void {
  store.change({ wishes: store.value.wishes + 1 });
  void refresh();
}

function copy({ providers }: Fleet, moment: Date): Fleet {
  return gather([...providers.values()].map((each) => ({ ...each })), moment);
}

/** Return the marks with those of hosts that have just changed, without those that are old. */
function mark(roots: Iterable<string>, now: Date): ReadonlyMap<string, Date> {
  const oldest = now.getTime() - MARKED_SECONDS * 1000;
  const marks = [...store.value.changed].filter(([, at]) => at.getTime() >= oldest);
  return new Map([...marks, ...[...roots].map((root): [string, Date] => [root, now])]);
}

/** Note up to where the fleet is right: that it could not be read again no longer matters. */
export function confirm(cursor: string, changes: Partial<Store> = {}): void {
  // A part that could not be read is still missing.
  const failure = missing() ? store.value.failure : null;
  store.change({ ...changes, cursor, failure });
}

/** Read some trees again, and go on from a cursor; without effect if the fleet is read meanwhile. */
export async function patchTrees(roots: ReadonlySet<string>, cursor: string, signal: AbortSignal): Promise<void> {
  const { fleet, parts } = store.value;
  if (!fleet || !roots.size) return confirm(cursor);
  const fields = [BASE, ...parts].join();
  const values = new Values();
  const read: Provider[] = [];
  for (const root of roots) {
    const path = `ledger/v1/fleet?in_tree=${root}&fields=${fields}`;
    const { providers } = await get<{ providers: unknown[] }>(path, { signal });
    for (const document of providers) read.push(readProvider(document, values));
  }
  if (store.value.fleet !== fleet || store.value.reading !== null) return;
  const moment = new Date();
  const seen = new Set([...roots, ...read.map(({ root }) => root)]);
  const next = patch(fleet, seen, read, moment);
  // What the feed reports first may be in the picture already.
  const changed = differing(fleet, next);
  // The fleet is no longer what these stand for.
  tags = {};
  // Consumers may have changed places, and nothing else.
  const isOther = changed.size || parts.has("consumer_count") || parts.has("consumers");
  confirm(cursor, isOther ? { fleet: next, changed: mark(changed, moment) } : {});
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
      const next: Tags = {};
      await readPart(part, () => fleet, signal, {}, next);
      tags = { ...tags, ...next };
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

interface Read {
  fleet: Fleet;
  cursor: string | null;
}

/** Read all providers; null if they are still those of the known tag. */
async function readBase(signal: AbortSignal, known: Tags, next: Tags): Promise<Read | null> {
  const moment = new Date();
  const providers: Provider[] = [];
  const values = new Values();
  const isFirst = !store.value.fleet || store.value.fleet.isPartial;
  let picture = FIRST_PICTURE;
  const take = (document: unknown) => {
    providers.push(readProvider(document, values));
    if (providers.length % STEP === 0) store.change({ reading: providers.length });
    if (isFirst && providers.length === picture) {
      // What is there is drawn; each picture has four times as many hosts as the one before.
      store.change({ fleet: gather(providers, moment, true) });
      picture *= 4;
    }
  };
  const { cursor, isSame } = await readProviders(BASE, take, signal, known, next);
  return isSame ? null : { fleet: gather(providers, moment), cursor };
}

interface Answered {
  /** Where the journal goes on after the providers, as the last line says. */
  cursor: string | null;
  isSame: boolean;
}

/** Read all providers with some fields, unless the answer is known, and note its tag. */
async function readProviders(
  fields: string,
  take: (document: unknown) => void,
  signal: AbortSignal,
  known: Tags,
  next: Tags,
): Promise<Answered> {
  let cursor: string | null = null;
  const takeProvider = (document: unknown) => {
    if ("cursor" in (document as object)) cursor = (document as { cursor: string }).cursor;
    else take(document);
  };
  const tag = await readLines(`ledger/v1/fleet?repeats=number&fields=${fields}`, takeProvider, { signal, tag: known[fields] ?? "" });
  if (tag !== null) next[fields] = tag;
  return { cursor, isSame: tag === null };
}

/** Read a part of all providers into a fleet, unless it is still that of the known tag. */
async function readPart(part: Part, target: () => Fleet, signal: AbortSignal, known: Tags, next: Tags): Promise<void> {
  let read = 0;
  const values = new Values();
  store.change({ reading: 0 });
  await readProviders(
    part,
    (document) => {
      readParts(document, part, target().providers, values);
      if (++read % STEP === 0) store.change({ reading: read });
    },
    signal,
    known,
    next,
  );
}

export function forget(): void {
  running?.abort();
  forgetNames();
  tags = {};
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

/** Return what changes whenever the cloud may have: by the feed, or because everything was read again. */
export function useTimes(): string {
  const { refreshes, cursor } = useFleet();
  return `${refreshes} ${cursor}`;
}
