// Readings of `/metrics` over the last minutes, taken while the console is visible.

import { ask, type Failure } from "./api.ts";
import { parse, type Reading } from "./metrics.ts";
import { Source } from "./source.ts";

export const EVERY_SECONDS = 5;
const KEPT = 121;

export interface Readings {
  taken: readonly Reading[];
  failure: Failure | null;
}

export const readings = new Source<Readings>({ taken: [], failure: null });
let timer = 0;

async function take(): Promise<void> {
  try {
    const text = await (await ask("metrics", { accept: "text/plain" })).text();
    const reading = { at: Date.now(), samples: parse(text) };
    readings.change({ taken: [...readings.value.taken, reading].slice(-KEPT), failure: null });
  } catch (failure) {
    readings.change({ failure: failure as Failure });
  }
}

/** Take readings from the first visit on, whichever view is shown next. */
export function watch(): void {
  if (timer) return;
  void take();
  timer = window.setInterval(() => void take(), EVERY_SECONDS * 1000);
}

export function again(): void {
  void take();
}

export function stop(): void {
  clearInterval(timer);
  timer = 0;
  readings.change({ taken: [], failure: null });
}
