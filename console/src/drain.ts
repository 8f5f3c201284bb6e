// A host to be emptied: what each of its consumers would ask for elsewhere, and what is left there after others.

import { capacity, SHARING, type Provider } from "./fleet.ts";
import { DISABLED } from "./health.ts";

type Amounts = Record<string, number>;

export interface Mover {
  consumer: string;
  type: string;
  project: string;
  amounts: Map<string, number>;
  /** The request for the same elsewhere. */
  query: string;
  /** The largest part of the host that it has, of any class. */
  part: number;
}

/** Return the consumers of a host, the largest first: they fit in the fewest places. */
export function listMovers(tree: readonly Provider[], sharing: readonly Provider[]): Mover[] {
  const inTree = new Map<string, Mover & { parts: Map<Provider, Amounts> }>();
  const whole = sumOf(tree.map(({ inventories }) => Object.entries(inventories).map(([name, each]) => [name, capacity(each)] as const)));
  for (const provider of [...tree, ...sharing]) {
    for (const { consumer, type, project, resources } of provider.allocations) {
      if (!inTree.has(consumer) && sharing.includes(provider)) continue;
      const mover = inTree.get(consumer) ?? { consumer, type, project, amounts: new Map(), query: "", part: 0, parts: new Map() };
      inTree.set(consumer, mover);
      mover.parts.set(provider, resources);
    }
  }
  return [...inTree.values()]
    .map(({ parts, ...mover }) => {
      const amounts = sumOf([...parts.values()].map(Object.entries<number>));
      const part = Math.max(0, ...[...amounts].map(([name, amount]) => amount / Math.max(1, whole.get(name) ?? Infinity)));
      return { ...mover, amounts, part, query: queryOf(parts) };
    })
    .sort((a, b) => b.part - a.part || (a.consumer < b.consumer ? -1 : 1));
}

function sumOf(all: readonly (readonly (readonly [string, number])[])[]): Map<string, number> {
  const sums = new Map<string, number>();
  for (const [name, amount] of all.flat()) sums.set(name, (sums.get(name) ?? 0) + amount);
  return sums;
}

/** What comes from the host itself, and from what shares with it, is one group; each inner provider is another. */
function queryOf(parts: ReadonlyMap<Provider, Amounts>): string {
  const own: (readonly [string, number])[][] = [];
  const groups: string[] = [];
  for (const [provider, amounts] of parts) {
    if (!provider.parent || provider.traits.includes(SHARING)) own.push(Object.entries(amounts));
    else groups.push(`resources${groups.length + 1}=${write(Object.entries(amounts))}`);
  }
  const sums = [...sumOf(own)];
  const said = sums.length ? [`resources=${write(sums)}`, ...groups] : groups;
  if (groups.length > 1) said.push("group_policy=none");
  return [...said, `root_required=!${DISABLED}`].join("&");
}

function write(amounts: readonly (readonly [string, number])[]): string {
  return amounts.map((each) => each.join(":")).join();
}

/** What has been promised of providers, by UUID. */
export type Promised = Map<string, Map<string, number>>;

/** Note what a candidate takes. */
export function promise(promised: Promised, allocations: Record<string, { resources: Amounts }>): void {
  for (const [uuid, { resources }] of Object.entries(allocations)) {
    const amounts = promised.get(uuid) ?? new Map<string, number>();
    promised.set(uuid, amounts);
    for (const [name, amount] of Object.entries(resources)) amounts.set(name, (amounts.get(name) ?? 0) + amount);
  }
}

/** Return the inventories of a what-if in which everything promised is taken. */
export function without(promised: Promised, providers: ReadonlyMap<string, Provider>): Record<string, object> {
  const reduced: Record<string, { inventories: Record<string, object> }> = {};
  for (const [uuid, amounts] of promised) {
    const inventories: Record<string, object> = {};
    for (const [name, amount] of amounts) {
      const inventory = providers.get(uuid)?.inventories[name];
      const left = inventory ? capacity(inventory) - amount : 0;
      if (inventory) inventories[name] = { total: Math.max(1, left), reserved: left > 0 ? 0 : 1, allocation_ratio: 1 };
    }
    reduced[uuid] = { inventories };
  }
  return reduced;
}
