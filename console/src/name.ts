// The names that operators gave to aggregates and projects.

import { Source } from "./source.ts";

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

/** What is meant by a name, whatever its case; anything else stands for itself. */
export function idOf(kind: Named, text: string): string {
  const wanted = text.trim().toLowerCase();
  for (const [id, name] of names.value[kind]) if (name.toLowerCase() === wanted) return id;
  return text.trim();
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
