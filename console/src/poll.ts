// What `/metrics` reported over the last minutes, and as means over the last day. It is kept
// in the browser: after a reload, the service's own counters tell what happened meanwhile.

import { ask, wrap, type Failure } from "./api.ts";
import { parse, type Reading } from "./metrics.ts";
import { evaluate, reduce } from "./panel.ts";
import { keyOf } from "./root.ts";
import { Source } from "./source.ts";
import { browser } from "./storage.ts";

export const EVERY_SECONDS = 5;
// How long one reading may take: the next one waits for it.
const LONGEST_SECONDS = 30;
const SHOWN = 10 * 60_000;
const SLOT = 5 * 60_000;
const SLOTS = 25 * 3_600_000;
const KEY = keyOf("readings");
// What is kept was computed by this version of the panels.
const VERSION = 1;

/** The numbers of all panels at one time. */
export interface Point {
  at: number;
  values: (number | null)[];
}

interface Kept {
  version: number;
  points: readonly Point[];
  /** Means of some minutes, over the last day. */
  slots: readonly Point[];
  last: Reading | null;
  /** The reading with which the present slot began. */
  first: Reading | null;
}

export interface Readings extends Kept {
  failure: Failure | null;
}

const NONE: Kept = { version: VERSION, points: [], slots: [], last: null, first: null };

export const readings = new Source<Readings>({ ...NONE, failure: null });
let timer = 0;
let isReading = false;

function kept(): Kept | null {
  const found = browser.read<Kept>(KEY);
  return found?.version === VERSION ? found : null;
}

function keep(): void {
  const { failure: _, ...all } = readings.value;
  browser.put(KEY, JSON.stringify(all));
}

/** Read once more, unless an earlier reading is under way: in another order they would make no sense. */
async function take(): Promise<void> {
  if (isReading) return;
  isReading = true;
  try {
    const signal = AbortSignal.timeout(LONGEST_SECONDS * 1000);
    const text = await (await ask("metrics", { accept: "text/plain", signal })).text();
    readings.change({ ...taken(readings.value, reduce({ at: Date.now(), samples: parse(text) })), failure: null });
    keep();
  } catch (failure) {
    readings.change({ failure: wrap(failure, "metrics") });
  }
  isReading = false;
}

/** Return what is kept once there is another reading. */
function taken({ points, slots, last, first }: Kept, reading: Reading): Kept {
  const { at } = reading;
  const more = last ? [...points, ...bridge(last, reading)] : points;
  const isFull = first && at - first.at >= SLOT;
  const all = isFull ? [...slots, { at, values: evaluate(first, reading) }] : slots;
  return {
    version: VERSION,
    points: more.filter((point) => at - point.at <= SHOWN),
    slots: all.filter((point) => at - point.at <= SLOTS),
    last: reading,
    first: !first || isFull ? reading : first,
  };
}

/** The numbers between two readings; long ones are a line, not a point. */
function bridge(before: Reading, after: Reading): Point[] {
  const values = evaluate(before, after);
  const isLong = after.at - before.at > 3000 * EVERY_SECONDS;
  return [...(isLong ? [{ at: before.at + 1, values }] : []), { at: after.at, values }];
}

/** Return the mean that was taken about a time; null if none was. */
export function earlier(slots: readonly Point[], at: number): Point | null {
  // A slot is named by its end.
  return slots.find((slot) => slot.at >= at && slot.at - at <= 2 * SLOT) ?? null;
}

/** Take readings from the first visit on, whichever view is shown next. */
export function watch(): void {
  if (timer) return;
  const before = kept();
  if (before) readings.change(before);
  void take();
  timer = window.setInterval(() => void take(), EVERY_SECONDS * 1000);
}

/** Go on if there were readings before the page was loaded. */
export function goOn(): void {
  if (kept()) watch();
}

export function again(): void {
  void take();
}

export function stop(): void {
  clearInterval(timer);
  timer = 0;
  readings.change({ ...NONE, failure: null });
}
