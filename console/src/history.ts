// Entries of the journal in words, and what was used and free at earlier times.

import { capacity as capacityOf, type Inventory } from "./fleet.ts";
import { amount, count, plural, when } from "./unit.ts";

type Amounts = Record<string, Record<string, number>>;
type Document = Record<string, unknown>;

export interface Entry {
  id: string;
  time: string;
  type: string;
  subject: string | null;
  root: string | null;
  /** Its place in the journal. */
  cursor: string;
  before: Document | null;
  after: Document | null;
  request?: string;
  request_id?: string;
  user_id?: string;
  user_name?: string;
  project_id?: string;
  project_name?: string;
  /** Of the providers that it mentions, by UUID. */
  names?: Record<string, string>;
  /** Whose the consumer is. */
  consumer?: Record<string, string | null>;
}

export const GAP = "journal.gap";

/** Whether an entry is about a consumer, not about a provider or a name. */
export function isOfConsumer({ type }: Entry): boolean {
  return /^(allocations|consumer|lease)\./.test(type);
}

/** Who made the change, as far as the service knew. */
export function who({ user_name, user_id, project_name, project_id }: Entry): string {
  const user = user_name ?? user_id;
  const project = project_name ?? project_id;
  if (!user) return "";
  return project ? `${user} (${project})` : user;
}

/** What changed: what was, and what is. */
export function tell(entry: Entry): string[] {
  const { type, before, after, subject } = entry;
  const [kind = "", verb = ""] = type.split(".");
  if (type === GAP) return ["changes that were not recorded"];
  if (kind === "allocations") return tellAllocations(entry);
  if (kind === "inventory") return tellInventories(before ?? {}, after ?? {});
  if (kind === "traits" || kind === "aggregates") return tellSet(kind, after ?? {});
  if (kind === "lease") return [`lease ${verb}${until(after ?? before)}`];
  if (kind === "provider" && verb !== "updated") return [`${verb}: ${String((after ?? before)?.["name"] ?? subject)}`];
  if (kind === "provider" || kind === "consumer") return tellFields(before ?? {}, after ?? {});
  const to = after && Object.values(after).map(String).join();
  return [`${kind.replace("_", " ")} ${verb}${to ? `: ${subject} → ${to}` : ""}`];
}

/** Entries of one request that follow each other are one group. */
export function group(entries: readonly Entry[]): Entry[][] {
  const groups: Entry[][] = [];
  for (const entry of entries) {
    const last = groups.at(-1);
    if (entry.request_id && last?.[0]!.request_id === entry.request_id) last.push(entry);
    else groups.push([entry]);
  }
  return groups;
}

/** What a group of entries changed in all. */
export function tellGroup(entries: readonly Entry[]): string {
  const claims = entries.filter(({ type }) => type === "allocations.changed");
  if (!claims.length) return plural(entries.length, "change");
  const sums = new Map<string, number>();
  for (const { before, after } of claims) {
    for (const [side, sign] of [[after, 1], [before, -1]] as const) {
      for (const resources of Object.values((side ?? {}) as Amounts)) {
        for (const name in resources) sums.set(name, (sums.get(name) ?? 0) + sign * resources[name]!);
      }
    }
  }
  const changes = [...sums].filter(([, sum]) => sum).map(([name, sum]) => `${sum > 0 ? "+" : "−"}${amount(name, Math.abs(sum))} ${name}`);
  const consumers = new Set(claims.map(({ subject }) => subject)).size;
  return `${plural(consumers, "consumer")}: ${changes.join(", ") || "other providers"}`;
}

/** From when until when: the last hour, the last night, the last week. */
export function periodOf(name: string, now: Date): { from: string; to: string | null } {
  const at = (days: number, hours: number) => new Date(now.getFullYear(), now.getMonth(), now.getDate() + days, hours).toISOString();
  if (name === "night") return now.getHours() < MORNING ? { from: at(-1, EVENING), to: null } : { from: at(-1, EVENING), to: at(0, MORNING) };
  const hours = name === "hour" ? 1 : 7 * 24;
  return { from: new Date(now.getTime() - hours * 3_600_000).toISOString(), to: null };
}

const EVENING = 20;
const MORNING = 8;

function until(lease: Document | null): string {
  const end = lease?.["expires_at"];
  return end ? `, until ${when(String(end))}` : "";
}

function tellAllocations({ before, after, names = {} }: Entry): string[] {
  const [had, has] = [(before ?? {}) as Amounts, (after ?? {}) as Amounts];
  return keys(had, has).flatMap((provider) => {
    const [from, to] = [had[provider] ?? {}, has[provider] ?? {}];
    const changes = keys(from, to)
      .filter((name) => from[name] !== to[name])
      .map((name) => `${name} ${amount(name, from[name] ?? 0)} → ${amount(name, to[name] ?? 0)}`);
    return changes.length ? [`${names[provider] ?? provider}: ${changes.join(", ")}`] : [];
  });
}

function tellInventories(before: Document, after: Document): string[] {
  return keys(before, after).map((name) => {
    const [from, to] = [before[name] as Inventory | undefined, after[name] as Inventory | undefined];
    if (!to) return `${name}: no inventory any more, ${amount(name, from!.total)} before`;
    if (!from) return `${name}: new inventory of ${amount(name, to.total)}`;
    return `${name}: ${tellFields(from as unknown as Document, to as unknown as Document).join(", ")}`;
  });
}

function tellSet(kind: string, { added, removed }: Document): string[] {
  const say = (verb: string, names: unknown) => {
    const listed = (names ?? []) as string[];
    return listed.length ? [`${kind} ${verb}: ${listed.join(", ")}`] : [];
  };
  return [...say("added", added), ...say("removed", removed)];
}

function tellFields(before: Document, after: Document): string[] {
  const say = (value: unknown) => (typeof value === "number" ? count(value) : String(value ?? "none"));
  return keys(before, after)
    .filter((name) => before[name] !== after[name])
    .map((name) => `${name} ${say(before[name])} → ${say(after[name])}`);
}

function keys(before: object, after: object): string[] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])];
}

/** What there was and what was used of a class, from a moment on. */
export interface Level {
  at: number;
  capacity: number;
  used: number;
}

/** Return the time from which on all changes are recorded. */
export function knownSince(entries: readonly Entry[], begins: number): number {
  const gap = entries.find(({ type }) => type === GAP);
  return gap ? Math.max(begins, Date.parse(gap.time)) : begins;
}

/**
 * Go back from what there is by undoing entries, until some are missing.
 *
 * The oldest level comes first, and that of now last.
 *
 * @param entries the newest first
 * @param counts whether a provider counts; of a part of the cloud, only some do
 */
export function goBack(
  entries: readonly Entry[],
  name: string,
  now: Level,
  counts: (entry: Entry, provider: string) => boolean = () => true,
): Level[] {
  const levels = [now];
  let { capacity, used } = now;
  for (const step of stepsOf(entries, name, counts)) {
    // Before the change there was another level, which the change ended.
    levels.push({ at: step.at, capacity, used });
    capacity -= step.capacity;
    used -= step.used;
    levels.push({ at: step.at, capacity, used });
  }
  return levels.reverse();
}

/** By how much each entry changed the level, the newest first, back to a gap. */
function stepsOf(
  entries: readonly Entry[],
  name: string,
  counts: (entry: Entry, provider: string) => boolean,
): Level[] {
  const steps: Level[] = [];
  // The inventories of a deleted provider are those of the last entry about them.
  const deleted = new Map<string, Level>();
  for (const entry of entries) {
    const { type, subject, before, after } = entry;
    const step: Level = { at: Date.parse(entry.time), capacity: 0, used: 0 };
    if (type === GAP) break;
    if (type === "allocations.changed") {
      step.used = sum(entry, after, name, counts) - sum(entry, before, name, counts);
    } else if (subject && counts(entry, subject)) {
      if (type === "provider.deleted") deleted.set(subject, step);
      else if (type === "inventory.changed") {
        const [had, has] = [before, after].map((each) => each?.[name] as Inventory | undefined);
        step.capacity = (has ? capacityOf(has) : 0) - (had ? capacityOf(had) : 0);
        const end = deleted.get(subject);
        if (end && (has || had)) {
          end.capacity = has ? -capacityOf(has) : 0;
          deleted.delete(subject);
        }
      }
    }
    if (step.capacity || step.used || type === "provider.deleted") steps.push(step);
  }
  return steps;
}

function sum(
  entry: Entry,
  amounts: Document | null,
  name: string,
  counts: (entry: Entry, provider: string) => boolean,
): number {
  let all = 0;
  for (const [provider, resources] of Object.entries((amounts ?? {}) as Amounts)) {
    if (counts(entry, provider)) all += resources[name] ?? 0;
  }
  return all;
}
