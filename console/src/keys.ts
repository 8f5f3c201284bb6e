// Whether single keys do something: who speaks to the browser, or hits keys by accident, does not want that.

import { keyOf } from "./root.ts";
import { Source } from "./source.ts";
import { browser } from "./storage.ts";

const KEY = keyOf("keys");

export const keys = new Source<{ areOn: boolean }>({ areOn: browser.get(KEY) !== "off" });

/** Turn them on or off, for this browser. */
export function turnKeys(areOn: boolean): void {
  keys.change({ areOn });
  browser.put(KEY, areOn ? null : "off");
}
