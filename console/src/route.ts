// Where the reader is: every view, filter and question is in the fragment of the
// address, which never leaves the browser.

import { useEffect, useState } from "preact/hooks";

export interface Place {
  view: string;
  id: string;
  query: URLSearchParams;
}

export type Changes = Record<string, string | readonly string[] | null>;

const MOVED = "placement:moved";

export function parse(fragment: string): Place {
  const [path = "", query = ""] = split(fragment.replace(/^#\/?/, ""));
  const [view = "", id = ""] = path.split("/");
  return { view: view || "fleet", id: decode(id), query: new URLSearchParams(query) };
}

function split(text: string): [string, string] {
  const end = text.indexOf("?");
  return end < 0 ? [text, ""] : [text.slice(0, end), text.slice(end + 1)];
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function address(view: string, id = "", changes: Changes = {}): string {
  const query = changed(new URLSearchParams(), changes).toString();
  const path = id ? `${view}/${encodeURIComponent(id)}` : view;
  return `#/${path}${query && `?${query}`}`;
}

function changed(query: URLSearchParams, changes: Changes): URLSearchParams {
  const result = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes)) {
    result.delete(name);
    const values = typeof value === "string" ? [value] : (value ?? []);
    values.filter(Boolean).forEach((each) => result.append(name, each));
  }
  return result;
}

let question = "";

/** Remember the question, for views that lead back to it. */
export function recall(asked: string): void {
  question = asked;
}

export function recalled(): string {
  return question;
}

let current = location.hash;
let left = "";

/** The fragment that the back button has just led away from; empty after other steps. */
export function leftBehind(): string {
  return left;
}

addEventListener("popstate", () => {
  left = current;
  current = location.hash;
});
addEventListener(MOVED, () => {
  left = "";
  current = location.hash;
});

export function here(): Place {
  return parse(location.hash);
}

export function go(target: string): void {
  history.pushState(null, "", target);
  dispatchEvent(new Event(MOVED));
}

/** Change what the address asks for; the back button skips a step that is replaced. */
export function change(changes: Changes, how: "push" | "replace" = "push"): void {
  const { view, id, query } = here();
  const next = changed(query, changes).toString();
  const target = address(view, id) + (next && `?${next}`);
  if (target === location.hash) return;
  history[how === "push" ? "pushState" : "replaceState"](null, "", target);
  dispatchEvent(new Event(MOVED));
}

export function usePlace(): Place {
  const [place, setPlace] = useState(here);
  useEffect(() => {
    const follow = () => setPlace(here());
    // It may have changed since it was first read.
    follow();
    addEventListener("popstate", follow);
    addEventListener(MOVED, follow);
    return () => {
      removeEventListener("popstate", follow);
      removeEventListener(MOVED, follow);
    };
  }, []);
  return place;
}
