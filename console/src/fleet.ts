// The cloud as values: providers, and hosts, which are roots with their trees.

import { natural } from "./unit.ts";

export interface Inventory {
  total: number;
  reserved: number;
  allocation_ratio: number;
  min_unit: number;
  max_unit: number;
  step_size: number;
}

/** What a consumer has from one provider. */
export interface Allocation {
  consumer: string;
  resources: Record<string, number>;
  project: string;
  user: string;
  type: string;
  created: string;
}

export interface Provider {
  uuid: string;
  name: string;
  generation: number;
  parent: string | null;
  root: string;
  inventories: Record<string, Inventory>;
  usages: Record<string, number>;
  aggregates: readonly string[];
  traits: readonly string[];
  /** How many consumers have something of its tree. */
  treeConsumers: number;
  allocations: readonly Allocation[];
}

export interface Sum {
  total: number;
  reserved: number;
  capacity: number;
  used: number;
  /** What is left of each provider: what one uses too much is not missing on another. */
  free: number;
}

/** A root with its tree. Its sums are in columns for all hosts, at its place. */
export class Host {
  readonly providers: Provider[];

  constructor(
    public root: Provider,
    private readonly columns: Columns,
    private readonly place: number,
  ) {
    this.providers = [root];
  }

  /** What all providers of the tree have together, by resource class. */
  get sums(): Sums {
    return new Sums(this.columns, this.place);
  }
}

interface Column {
  total: Float64Array;
  reserved: Float64Array;
  capacity: Float64Array;
  used: Float64Array;
  free: Float64Array;
  /** Which hosts have the class. */
  has: Uint8Array;
}

/** Numbers of all hosts by class: arrays, because an object for each would take ten times the memory. */
class Columns {
  readonly byClass = new Map<string, Column>();

  constructor(private readonly size: number) {}

  add(place: number, { inventories, usages }: Provider): void {
    for (const name in inventories) {
      const column = this.column(name);
      const inventory = inventories[name]!;
      const [most, taken] = [capacity(inventory), usages[name] ?? 0];
      column.has[place] = 1;
      column.total[place]! += inventory.total;
      column.reserved[place]! += inventory.reserved;
      column.capacity[place]! += most;
      column.used[place]! += taken;
      column.free[place]! += Math.max(0, most - taken);
    }
  }

  private column(name: string): Column {
    let column = this.byClass.get(name);
    if (!column) {
      const make = () => new Float64Array(this.size);
      column = { total: make(), reserved: make(), capacity: make(), used: make(), free: make(), has: new Uint8Array(this.size) };
      this.byClass.set(name, column);
    }
    return column;
  }
}

/** The sums of one host, read from the columns. */
export class Sums {
  constructor(
    private readonly columns: Columns,
    private readonly place: number,
  ) {}

  get(name: string): Sum | undefined {
    const column = this.columns.byClass.get(name);
    if (!column?.has[this.place]) return undefined;
    const { total, reserved, capacity, used, free } = column;
    const at = this.place;
    return { total: total[at]!, reserved: reserved[at]!, capacity: capacity[at]!, used: used[at]!, free: free[at]! };
  }

  *[Symbol.iterator](): Iterator<[string, Sum]> {
    for (const name of this.columns.byClass.keys()) {
      const sum = this.get(name);
      if (sum) yield [name, sum];
    }
  }
}

export interface Fleet {
  hosts: Host[];
  providers: Map<string, Provider>;
  /** How many hosts have each class, most first. */
  classes: [string, number][];
  /** What all hosts have together. */
  totals: Map<string, Sum>;
  moment: Date;
  /** Whether more is still being read. */
  isPartial: boolean;
}

export const SHARING = "MISC_SHARES_VIA_AGGREGATE";

export function capacity(inventory: Inventory): number {
  return Math.floor((inventory.total - inventory.reserved) * inventory.allocation_ratio);
}

export function gather(listed: readonly Provider[], moment = new Date(), isPartial = false): Fleet {
  const providers = new Map<string, Provider>();
  const places = new Map<string, number>();
  for (const provider of listed) {
    providers.set(provider.uuid, provider);
    if (!places.has(provider.root)) places.set(provider.root, places.size);
  }
  const columns = new Columns(places.size);
  const hosts: Host[] = [];
  for (const provider of listed) {
    const place = places.get(provider.root)!;
    columns.add(place, provider);
    const host = hosts[place];
    if (host) host.providers.push(provider);
    else hosts[place] = new Host(provider, columns, place);
  }
  for (const host of hosts) host.root = providers.get(host.root.root) ?? host.root;
  const classes: [string, number][] = [];
  const totals = new Map<string, Sum>();
  for (const [name, { total, reserved, capacity, used, free, has }] of columns.byClass) {
    const all = (numbers: Float64Array | Uint8Array) => (numbers as Float64Array).reduce((sum, each) => sum + each, 0);
    classes.push([name, all(has)]);
    totals.set(name, { total: all(total), reserved: all(reserved), capacity: all(capacity), used: all(used), free: all(free) });
  }
  classes.sort((a, b) => b[1] - a[1] || familiar(a[0]) - familiar(b[0]) || natural(a[0], b[0]));
  return { hosts: inOrder(hosts), providers, classes, totals, moment, isPartial };
}

/** Return the fleet with some of its trees as they were read again; what was not found is gone. */
export function patch(fleet: Fleet, roots: ReadonlySet<string>, read: readonly Provider[], moment: Date): Fleet {
  const again = new Set(read.map(({ uuid }) => uuid));
  const kept = [...fleet.providers.values()].filter(({ uuid, root }) => !roots.has(root) && !again.has(uuid));
  return gather([...kept, ...read], moment);
}

/** Return the roots of trees that are new, or of which a provider was changed, used or taken away. */
export function differing(before: Fleet, after: Fleet): Set<string> {
  const found = new Set<string>();
  for (const provider of after.providers.values()) {
    const old = before.providers.get(provider.uuid);
    if (!old || !isUnchanged(old, provider)) found.add(provider.root);
  }
  for (const { uuid, root } of before.providers.values()) {
    if (after.providers.get(uuid)?.root !== root) found.add(root);
  }
  return found;
}

/**
 * Whether nothing is different.
 *
 * The generation stays when a provider gets another name or parent, and when a client before 1.19 sets its aggregates.
 */
function isUnchanged(before: Provider, after: Provider): boolean {
  const isPlain = (["name", "parent", "root", "generation"] as const).every((field) => before[field] === after[field]);
  return isPlain && isSame(before.usages, after.usages) && before.aggregates.join() === after.aggregates.join();
}

function isSame(before: Record<string, number>, after: Record<string, number>): boolean {
  for (const name in before) if (before[name] !== after[name]) return false;
  for (const name in after) if (!(name in before)) return false;
  return true;
}

/** Sort by name as people count: quickly, for there may be many. */
function inOrder(hosts: readonly Host[]): Host[] {
  const keyed = hosts.map((host) => ({ host, key: sortKey(host.root.name) }));
  keyed.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
  return keyed.map(({ host }) => host);
}

/** A text that plain comparison puts where its numbers belong. */
function sortKey(name: string): string {
  return name.toLowerCase().replace(/\d+/g, (digits) => digits.padStart(12, "0"));
}

const FAMILIAR = ["VCPU", "PCPU", "MEMORY_MB", "DISK_GB"];

function familiar(name: string): number {
  const place = FAMILIAR.indexOf(name);
  return place < 0 ? FAMILIAR.length : place;
}

export function has(host: Host, trait: string): boolean {
  return host.providers.some(({ traits }) => traits.includes(trait));
}

export function isIn(host: Host, aggregate: string): boolean {
  return host.providers.some(({ aggregates }) => aggregates.includes(aggregate));
}

/** A consumer with everything that it has, from all providers. */
export interface Consumer {
  uuid: string;
  project: string;
  user: string;
  type: string;
  created: Date | null;
  resources: Map<string, number>;
  hosts: Set<Host>;
}

export function listConsumers(fleet: Fleet): Consumer[] {
  const found = new Map<string, Consumer>();
  for (const host of fleet.hosts) {
    for (const { allocations } of host.providers) {
      for (const each of allocations) {
        let consumer = found.get(each.consumer);
        if (!consumer) found.set(each.consumer, (consumer = begin(each)));
        consumer.hosts.add(host);
        add(consumer.resources, each.resources);
      }
    }
  }
  return [...found.values()];
}

function begin(each: Allocation): Consumer {
  const created = each.created ? new Date(each.created) : null;
  const { project, user, type } = each;
  return { uuid: each.consumer, project, user, type, created, resources: new Map(), hosts: new Set() };
}

export function add(amounts: Map<string, number>, more: Record<string, number>): void {
  for (const name in more) amounts.set(name, (amounts.get(name) ?? 0) + more[name]!);
}
