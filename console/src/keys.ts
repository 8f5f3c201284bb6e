// Whether single keys do something: who speaks to the browser, or hits keys by accident, does not want that.

import { keyOf } from "./root.ts";
import { Source } from "./source.ts";

const KEY = keyOf("keys");

export const keys = new Source<{ areOn: boolean }>({ areOn: areKeptOn() });

function areKeptOn(): boolean {
  try {
    return localStorage.getItem(KEY) !== "off";
  } catch {
    return true;
  }
}

/** Turn them on or off, for this browser. */
export function turnKeys(areOn: boolean): void {
  keys.change({ areOn });
  try {
    if (areOn) localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, "off");
  } catch {
    // They are off until the page is loaded again.
  }
}
