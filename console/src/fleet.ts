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
  allocations: readonly Allocation[];
}

export interface Sum {
  total: number;
  reserved: number;
  capacity: number;
  used: number;
}

export interface Host {
  root: Provider;
  providers: Provider[];
  sums: Map<string, Sum>;
}

export interface Fleet {
  hosts: Host[];
  providers: Map<string, Provider>;
  byRoot: Map<string, Host>;
  /** How many hosts have each class, most first. */
  classes: [string, number][];
  moment: Date;
}

export const SHARING = "MISC_SHARES_VIA_AGGREGATE";

export function capacity(inventory: Inventory): number {
  return Math.floor((inventory.total - inventory.reserved) * inventory.allocation_ratio);
}

export function free(sum: Sum): number {
  return Math.max(0, sum.capacity - sum.used);
}

export function gather(listed: Iterable<Provider>, moment = new Date()): Fleet {
  const providers = new Map<string, Provider>();
  const byRoot = new Map<string, Host>();
  for (const provider of listed) {
    providers.set(provider.uuid, provider);
    const host = byRoot.get(provider.root);
    if (host) host.providers.push(provider);
    else byRoot.set(provider.root, { root: provider, providers: [provider], sums: new Map() });
  }
  const numbers = new Map<string, number>();
  for (const host of byRoot.values()) {
    host.root = providers.get(host.root.root) ?? host.root;
    host.sums = sum(host.providers);
    for (const name of host.sums.keys()) numbers.set(name, (numbers.get(name) ?? 0) + 1);
  }
  const hosts = [...byRoot.values()].sort((a, b) => natural(a.root.name, b.root.name));
  const classes = [...numbers].sort((a, b) => b[1] - a[1] || familiar(a[0]) - familiar(b[0]) || natural(a[0], b[0]));
  return { hosts, providers, byRoot, classes, moment };
}

const FAMILIAR = ["VCPU", "PCPU", "MEMORY_MB", "DISK_GB"];

function familiar(name: string): number {
  const place = FAMILIAR.indexOf(name);
  return place < 0 ? FAMILIAR.length : place;
}

export function sum(providers: readonly Provider[]): Map<string, Sum> {
  const sums = new Map<string, Sum>();
  for (const { inventories, usages } of providers) {
    for (const name in inventories) {
      const inventory = inventories[name]!;
      const so = sums.get(name) ?? { total: 0, reserved: 0, capacity: 0, used: 0 };
      so.total += inventory.total;
      so.reserved += inventory.reserved;
      so.capacity += capacity(inventory);
      so.used += usages[name] ?? 0;
      sums.set(name, so);
    }
  }
  return sums;
}

export function consumers(host: Host): Set<string> {
  const found = new Set<string>();
  for (const { allocations } of host.providers) {
    for (const { consumer } of allocations) found.add(consumer);
  }
  return found;
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
