// The names that operators gave to aggregates and projects.

import { Source } from "./source.ts";
import { isUuid } from "./unit.ts";

export type Named = "aggregates" | "projects";

export type Names = Record<Named, ReadonlyMap<string, string>>;

const NONE: Names = { aggregates: new Map(), projects: new Map() };

export const names = new Source<Names>(NONE);

export function keepNames({ aggregates, projects }: Record<Named, Record<string, string>>): void {
  names.change({ aggregates: new Map(Object.entries(aggregates)), projects: new Map(Object.entries(projects)) });
}

export function forgetNames(): void {
  names.change(NONE);
}

/** The name of an aggregate or project; empty if it has none. */
export function nameOf(kind: Named, id: string): string {
  return names.value[kind].get(id) ?? "";
}

/** What is meant by a name, in any case if it is that of one thing; else the text itself. */
export function idOf(kind: Named, text: string): string {
  const said = text.trim();
  const wanted = isUuid(said) ? said.toLowerCase() : said;
  const found = [...names.value[kind]].filter(([, name]) => name.toLowerCase() === wanted.toLowerCase());
  const exact = found.filter(([, name]) => name === wanted);
  const [only, ...others] = exact.length ? exact : found;
  return only && !others.length ? only[0] : wanted;
}

/** Names that several things have: they stand for none of them. */
export function shared(known: ReadonlyMap<string, string>): Set<string> {
  const [once, twice] = [new Set<string>(), new Set<string>()];
  for (const name of known.values()) (once.has(name) ? twice : once).add(name);
  return twice;
}

const UUID = /([0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12})/gi;

/** The parts of a sentence: what is at odd places is the UUID of something named. */
export function split(text: string): string[] {
  const parts = [""];
  text.split(UUID).forEach((part, at) => {
    if (at % 2 && (nameOf("aggregates", part) || nameOf("projects", part))) parts.push(part, "");
    else parts[parts.length - 1] += part;
  });
  return parts;
}
