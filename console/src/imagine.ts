// What providers are imagined to have, as terms of the address: `UUID:TRAIT`,
// `UUID:in:AGGREGATE`, `UUID:CLASS=TOTAL`, `UUID:CLASS<=MAX_UNIT`.

import { capacity, type Provider } from "./fleet.ts";
import { nameOf } from "./name.ts";
import { amount, short } from "./unit.ts";
import type { Constraint, Near, Unmet } from "./wire.ts";

interface Imagined {
  inventories?: Record<string, { total?: number; max_unit?: number }>;
  traits?: { add: string[] };
  aggregates?: { add: string[] };
}

const AMOUNT = /^([A-Z0-9_]+)(<?=)(\d+)$/;

function split(pair: string): [string, string] {
  const end = pair.indexOf(":");
  return [pair.slice(0, end), pair.slice(end + 1)];
}

/** Return the providers of a what-if, as the ledger takes them. */
export function given(give: readonly string[]): Record<string, Imagined> {
  const providers: Record<string, Imagined> = {};
  for (const pair of give) {
    const [uuid, term] = split(pair);
    const provider = (providers[uuid] ??= {});
    const [, name, sign, number] = AMOUNT.exec(term) ?? [];
    if (name) {
      const inventory = ((provider.inventories ??= {})[name] ??= {});
      inventory[sign === "=" ? "total" : "max_unit"] = Number(number);
    } else if (term.startsWith("in:")) (provider.aggregates ??= { add: [] }).add.push(term.slice(3));
    else (provider.traits ??= { add: [] }).add.push(term);
  }
  return providers;
}

/** Say what is imagined, after "What if". */
export function sayGiven(pair: string, nameOf: (uuid: string) => string): string {
  const [uuid, term] = split(pair);
  const [, name, sign, number] = AMOUNT.exec(term) ?? [];
  if (name) {
    const what = `${amount(name, Number(number))} ${name}`;
    return sign === "=" ? `${nameOf(uuid)} had ${what} in all` : `${nameOf(uuid)} gave up to ${what} to one consumer`;
  }
  if (term.startsWith("in:")) return `${nameOf(uuid)} were in ${say(term.slice(3))}`;
  return `${nameOf(uuid)} had ${term}`;
}

function say(aggregate: string): string {
  return nameOf("aggregates", aggregate) || short(aggregate);
}

interface Help {
  term: string;
  text: string;
}

/** Return all that a host would need to serve; null if some of it cannot be imagined, and the rest would not help. */
export function helpOf(
  { uuid, unmet }: Near,
  constraints: ReadonlyMap<string, Constraint>,
  providerOf: (uuid: string) => Provider | undefined,
): { terms: string[]; text: string } | null {
  const terms: string[] = [];
  const texts: string[] = [];
  for (const each of unmet) {
    const provider = each.provider ?? uuid;
    const constraint = constraints.get(each.id);
    const help = constraint && imagine(constraint, each, providerOf(provider));
    if (!help) return null;
    terms.push(`${provider}:${help.term}`);
    texts.push(help.text);
  }
  return terms.length ? { terms, text: texts.join(" and ") } : null;
}

/** Whether a host would serve if one of its consumers were gone. */
export function isEnough(held: number, { needs, has }: Unmet, { unmet }: Near): boolean {
  return unmet.length === 1 && Number(has) + held >= Number(needs);
}

/** Return what a provider would need to meet a constraint; null if it cannot be imagined. */
export function imagine({ kind, value, resource_class: name }: Constraint, unmet: Unmet, provider: Provider | undefined): Help | null {
  const [first = ""] = [value ?? []].flat().map(String);
  const needs = Number(unmet.needs ?? value);
  switch (kind) {
    case "required":
      return first ? { term: first, text: "had it" } : null;
    case "member_of":
      return first ? { term: `in:${first}`, text: `were in ${say(first)}` } : null;
    case "unit":
      return name && needs > (provider?.inventories[name]?.max_unit ?? Infinity)
        ? { term: `${name}<=${needs}`, text: `gave up to ${amount(name, needs)} ${name}` }
        : null;
    case "room":
      return name ? imagineRoom(name, needs, unmet, provider) : null;
    default:
      return null;
  }
}

function imagineRoom(name: string, needs: number, { used = 0 }: Unmet, provider: Provider | undefined): Help | null {
  const inventory = provider?.inventories[name];
  if (!inventory || !(needs > 0) || !(inventory.allocation_ratio > 0)) return null;
  let total = Math.ceil((used + needs) / inventory.allocation_ratio) + inventory.reserved;
  // A product of floating-point numbers may be a little less.
  while (capacity({ ...inventory, total }) < used + needs) total += 1;
  return total > inventory.total ? { term: `${name}=${total}`, text: `had ${amount(name, total)} ${name} in all` } : null;
}
