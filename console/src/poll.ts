// Readings of `/metrics` over the last minutes, taken while the console is looked at.

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
let watchers = 0;

async function take(): Promise<void> {
  try {
    const text = await (await ask("metrics", { accept: "text/plain" })).text();
    const reading = { at: Date.now(), samples: parse(text) };
    readings.change({ taken: [...readings.value.taken, reading].slice(-KEPT), failure: null });
  } catch (failure) {
    readings.change({ failure: failure as Failure });
  }
}

/** Take readings as long as somebody wants them; those that were taken are kept. */
export function watch(): () => void {
  watchers += 1;
  if (watchers === 1) {
    void take();
    timer = window.setInterval(() => void take(), EVERY_SECONDS * 1000);
  }
  return () => {
    watchers -= 1;
    if (!watchers) clearInterval(timer);
  };
}

export function again(): void {
  void take();
}
