// What deserves attention: found in the fleet by what its numbers and traits mean.

import { SHARING, type Fleet, type Host } from "./fleet.ts";
import type { Lease } from "./lease.ts";
import { nameOf } from "./name.ts";
import { Source } from "./source.ts";
import { amount, count, percent, plural, usedOf } from "./unit.ts";

export interface Finding {
  /** What it is about: a host, or a consumer. */
  view: "host" | "consumers";
  uuid: string;
  name: string;
  /** How much it matters: the most comes first. */
  weight: number;
  text: string;
  /** The resource classes that it is about, where these are counted. */
  classes?: string[];
}

export interface Concern {
  id: string;
  title: string;
  meaning: string;
  /** Whether something is to be mended; otherwise it is worth knowing. */
  isBad: boolean;
  found: Finding[];
}

export const DISABLED = "COMPUTE_STATUS_DISABLED";
const PROCESSORS = ["VCPU", "PCPU"];
const MEMORY = "MEMORY_MB";
// Less than this part of the processors is as good as none, more than that of the memory is much.
const LITTLE = 0.02;
const MUCH = 0.25;
// From this part on, a class is nearly full.
const NEARLY = 0.9;

export function examine(fleet: Fleet): Concern[] {
  const inUse = aggregatesOfOthers(fleet);
  return [
    concern(fleet, "over", "Over capacity", "more is used than the inventory allows: after a change of it, or of a ratio", over, true),
    byClass(concern(fleet, "full", "Full", "hosts with nothing free", (host) => full(host, true))),
    byClass(concern(fleet, "nearly-full", "Nearly full", `hosts with at most ${percent(1 - NEARLY, 1)} free`, (host) => full(host, false))),
    concern(fleet, "disabled", "Disabled with room", `hosts with ${DISABLED} that could take consumers again`, disabled),
    concern(fleet, "stranded", "Stranded memory", "free memory on hosts whose processors are used up", stranded),
    concern(fleet, "pools", "Unused pools", "providers that share, but that nothing uses", (host) => unused(host, inUse)),
    concern(fleet, "empty", "Without inventory", "hosts that have nothing to give", bare),
  ];
}

/** How many hosts use more than they have. */
export function countOver({ hosts }: Fleet): number {
  return hosts.filter(over).length;
}

/** What the last look at Health found to be mended, beside hosts over capacity. */
export const worries = new Source({ others: 0 });

type Look = (host: Host) => { weight: number; text: string; classes?: string[] } | null;

function concern({ hosts }: Fleet, id: string, title: string, meaning: string, look: Look, isBad = false): Concern {
  const found: Finding[] = [];
  for (const host of hosts) {
    const seen = look(host);
    if (seen) found.push({ view: "host", uuid: host.root.uuid, name: host.root.name, ...seen });
  }
  found.sort((a, b) => b.weight - a.weight);
  return { id, title, meaning, isBad, found };
}

/** Say of how many hosts each class is meant, and of how many several at once. */
function byClass(concern: Concern): Concern {
  const hosts = new Map<string, number>();
  let several = 0;
  for (const { classes = [] } of concern.found) {
    classes.forEach((name) => hosts.set(name, (hosts.get(name) ?? 0) + 1));
    several += Number(classes.length > 1);
  }
  const said = [...hosts].sort((a, b) => b[1] - a[1]).map(([name, number]) => `${name} on ${plural(number, "host")}`);
  if (several) said.push(`several at once on ${plural(several, "host")}`);
  return { ...concern, meaning: said.length ? `${concern.meaning}: ${said.slice(0, 8).join(", ")}` : concern.meaning };
}

/** The classes of which a host has nothing left, or nearly nothing; single things are in use or not. */
function full(host: Host, isFull: boolean): ReturnType<Look> {
  const used = [...host.sums]
    .filter(([, { capacity }]) => capacity > 1)
    .map(([name, { free, capacity }]): [string, number] => [name, 1 - free / capacity])
    .filter(([, part]) => part >= NEARLY);
  if (!used.length || used.some(([, part]) => part >= 1) !== isFull) return null;
  const text = used.map(([name, part]) => (part >= 1 ? `${name} full` : `${name} ${percent(part, 1)}`)).join(", ");
  return { weight: used.reduce((sum, [, part]) => sum + part, 0), text, classes: used.map(([name]) => name) };
}

const over: Look = (host) => {
  const said: string[] = [];
  let most = 0;
  for (const { name: provider, inventories, usages } of host.providers) {
    for (const name in inventories) {
      const { total, reserved, allocation_ratio: ratio } = inventories[name]!;
      const capacity = Math.floor((total - reserved) * ratio);
      const used = usages[name] ?? 0;
      if (used <= capacity) continue;
      const where = host.providers.length > 1 ? ` on ${provider}` : "";
      const what = capacity > 0 ? `${amount(name, used)} of ${amount(name, capacity)} ${name} used` : `${name}: ${usedOf(name, used, capacity, total)}`;
      said.push(`${what}${where}`);
      most = Math.max(most, capacity > 0 ? used / capacity : Infinity);
    }
  }
  return said.length ? { weight: most, text: said.join(", ") } : null;
};

const disabled: Look = (host) => {
  if (!host.root.traits.includes(DISABLED)) return null;
  const free = [...host.sums].filter(([, sum]) => sum.free > 0);
  const part = Math.max(0, ...free.map(([, sum]) => sum.free / sum.capacity));
  const said = free.map(([name, sum]) => `${amount(name, sum.free)} ${name}`);
  return said.length ? { weight: part, text: `${said.join(", ")} free` } : null;
};

const stranded: Look = (host) => {
  const memory = host.sums.get(MEMORY);
  const processors = PROCESSORS.map((name) => host.sums.get(name)).filter((sum) => sum && sum.capacity > 0);
  if (!memory || memory.capacity <= 0 || !processors.length) return null;
  const isFull = processors.every((sum) => sum!.free <= LITTLE * sum!.capacity);
  const { free } = memory;
  if (!isFull || free < MUCH * memory.capacity) return null;
  return { weight: free, text: `${amount(MEMORY, free)} free, ${percent(free, memory.capacity)} of its memory` };
};

/** Return the aggregates of providers that do not share. */
function aggregatesOfOthers({ providers }: Fleet): Set<string> {
  const found = new Set<string>();
  for (const { traits, aggregates } of providers.values()) {
    if (!traits.includes(SHARING)) aggregates.forEach((each) => found.add(each));
  }
  return found;
}

function unused(host: Host, aggregates: ReadonlySet<string>): ReturnType<Look> {
  const pools = host.providers.filter(({ traits }) => traits.includes(SHARING));
  const idle = pools.filter(({ usages }) => Object.values(usages).every((used) => !used));
  if (!idle.length) return null;
  const alone = idle.some((pool) => !pool.aggregates.some((each) => aggregates.has(each)));
  return alone
    ? { weight: 2, text: "shares with no host: it has no aggregate in common with any" }
    : { weight: 1, text: "nothing of it is used" };
}

const bare: Look = (host) =>
  host.providers.every(({ inventories }) => !Object.keys(inventories).length)
    ? { weight: 0, text: plural(host.providers.length, "provider") + " without inventory" }
    : null;

// What the fleet does not show, but other answers of the ledger.

/** Leases that end soon: what they hold is then given back, unless they are confirmed. */
export function ending(leases: readonly Lease[], now: Date): Concern {
  const found = leases.map(({ consumer, expires_at: end, project_id: project, consumer_type: type }): Finding => {
    const minutes = Math.max(0, Math.ceil((Date.parse(end) - now.getTime()) / 60_000));
    const text = `${type ?? "consumer"} of ${nameOf("projects", project) || project}, ends in ${plural(minutes, "minute")}`;
    return { view: "consumers", uuid: consumer, name: consumer, weight: -minutes, text };
  });
  return { id: "leases", title: "Leases about to end", meaning: "within the next hour, unless they are renewed or confirmed", isBad: false, found };
}

interface Difference {
  path: string;
  before: unknown;
  after: unknown;
}

export interface Declared {
  owner: string;
  uuid: string;
  name: string | null;
  root: string | null;
  drift: Difference[];
}

/** Providers that are not as they were declared. */
export function drifting(declared: readonly Declared[]): Concern {
  const found = declared.map(({ owner, uuid, name, root, drift }): Finding => {
    const said = drift.map(({ path, before, after }) => `${path}: declared ${say(before)}, is ${say(after)}`);
    return { view: "host", uuid: root ?? uuid, name: name ?? uuid, weight: drift.length, text: `${said.join("; ")} (${owner})` };
  });
  found.sort((a, b) => b.weight - a.weight);
  return { id: "drift", title: "Drift from the declared file", meaning: "changed since it was applied, by others", isBad: true, found };
}

function say(value: unknown): string {
  if (value === true) return "present";
  if (value === false || value === null || value === undefined) return "absent";
  if (typeof value !== "object") return String(value);
  return Object.entries(value)
    .map(([key, each]) => `${key} ${each !== null && typeof each === "object" ? say(each) : String(each)}`)
    .join(", ");
}

/** What `placement-audit` has recorded, by the name of the audit. */
export interface Audit {
  name: string;
  recorded_at: string;
  claims: number;
  living: number;
  counts: Record<string, number>;
  findings: AuditFinding[];
}

interface AuditFinding {
  kind: string;
  consumer: string;
  consumer_type?: string;
  project_id?: string;
  host?: string;
  resources?: string;
  expected_host?: string;
  expected_resources?: string;
  claimed_at?: string;
  claimed_by?: string;
}

const AUDITED: [string, string, string][] = [
  ["orphan", "Orphans", "claims whose consumer no longer lives"],
  ["missing", "Missing claims", "consumers that live and claim nothing"],
  ["wrong host", "Claims on the wrong host", "claims on another host than the consumer's"],
  ["wrong amounts", "Claims of wrong amounts", "claims of other amounts than the consumer's"],
];

/** What audits have found, by kind. */
export function audited(audits: readonly Audit[]): Concern[] {
  return AUDITED.map(([kind, title, meaning]) => {
    const found = audits.flatMap(({ name, findings }) =>
      findings.filter((each) => each.kind === kind).map((each) => findingOf(each, audits.length > 1 ? name : "")),
    );
    const all = audits.reduce((sum, { counts }) => sum + (counts[kind] ?? 0), 0);
    const more = all > found.length ? `; ${count(all - found.length)} more are in the report of placement-audit` : "";
    return { id: `audit-${kind.replace(" ", "-")}`, title, meaning: meaning + more, isBad: true, found };
  });
}

function findingOf(found: AuditFinding, audit: string): Finding {
  const { consumer, host, resources, expected_host: otherHost, expected_resources: others, claimed_at: at, claimed_by: by } = found;
  const project = found.project_id ? ` of ${nameOf("projects", found.project_id) || found.project_id}` : "";
  const parts = [
    `${found.consumer_type ?? "consumer"}${project}`,
    resources ? `claims ${resources}${host ? ` on ${host}` : ""}` : "claims nothing",
    others || otherHost ? `should${others ? ` claim ${others}` : " be"}${otherHost ? ` on ${otherHost}` : ""}` : "",
    at ? `claimed at ${at}${by ? ` by ${by}` : ""}` : "",
    audit ? `found by ${audit}` : "",
  ];
  return { view: "consumers", uuid: consumer, name: consumer, weight: 0, text: parts.filter(Boolean).join(", ") };
}

/** What is to be mended, and what is worth knowing. */
export function summarise(concerns: readonly Concern[]): [string, string] {
  const say = (isBad: boolean) =>
    concerns
      .filter((each) => each.isBad === isBad && each.found.length)
      .map(({ title, found }) => `${count(found.length)} ${title.toLowerCase()}`)
      .join(", ");
  const [bad, others] = [say(true), say(false)];
  return [bad ? `To be mended: ${bad}.` : "Nothing is to be mended.", others && `Worth knowing: ${others}.`];
}

/** How many findings are to be mended. */
export function countBad(concerns: readonly Concern[]): number {
  return concerns.reduce((sum, { isBad, found }) => sum + (isBad ? found.length : 0), 0);
}
