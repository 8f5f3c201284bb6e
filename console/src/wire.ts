// Documents of the APIs, parsed into values.

import type { Allocation, Provider } from "./fleet.ts";

/** The parts of a fleet that are read only when a view needs them; consumers are allocations with their owners. */
export type Part = "traits" | "consumer_count" | "consumers";

/** A value, or the number of an equal one in the same answer. */
type Once<T> = T | number;

interface ProviderDocument {
  uuid: string;
  name: string;
  generation?: number;
  parent_provider_uuid?: string | null;
  root_provider_uuid?: string;
  inventories?: Once<Provider["inventories"]>;
  usages?: Record<string, number>;
  aggregates?: Once<string[]>;
  traits?: Once<string[]>;
  tree_consumers?: number;
  allocations?: Record<string, AllocationDocument>;
}

interface AllocationDocument {
  resources: Record<string, number>;
  project_id?: string | null;
  user_id?: string | null;
  consumer_type?: string | null;
  created_at?: string | null;
}

const NOTHING: readonly never[] = [];

type Repeated = "inventories" | "traits" | "aggregates";

/** The values of one answer that many providers have: each is there once, and afterwards its number. */
export class Values {
  private readonly known: { [K in Repeated]: Provider[K][] } = { inventories: [], traits: [], aggregates: [] };

  of<K extends Repeated>(kind: K, told: Once<Provider[K]> | undefined, none: Provider[K]): Provider[K] {
    if (told === undefined) return none;
    const known: Provider[K][] = this.known[kind];
    if (typeof told === "number") return known[told]!;
    known.push(told);
    return told;
  }
}

const NONE = {};

export function readProvider(document: unknown, values = new Values()): Provider {
  const told = document as ProviderDocument;
  const { uuid, root_provider_uuid: root = uuid } = told;
  return {
    uuid,
    name: told.name,
    generation: told.generation ?? 0,
    parent: told.parent_provider_uuid ?? null,
    root: root === uuid ? uuid : root,
    inventories: values.of("inventories", told.inventories, NONE),
    usages: told.usages ?? NONE,
    aggregates: values.of("aggregates", told.aggregates, NOTHING),
    traits: values.of("traits", told.traits, NOTHING),
    treeConsumers: told.tree_consumers ?? 0,
    allocations: readAllocations(told),
  };
}

/** Add to providers the parts that were left out when they were read. */
export function readParts(
  document: unknown,
  part: Part,
  providers: ReadonlyMap<string, Provider>,
  values: Values,
): void {
  const told = document as ProviderDocument;
  // Of providers that are new as well: later ones may refer to them.
  const traits = values.of("traits", told.traits, NOTHING);
  const provider = providers.get(told.uuid);
  if (!provider) return;
  if (part === "traits") provider.traits = traits;
  else if (part === "consumer_count") provider.treeConsumers = told.tree_consumers ?? 0;
  else provider.allocations = readAllocations(told);
}

function readAllocations({ allocations }: ProviderDocument): readonly Allocation[] {
  if (!allocations) return NOTHING;
  return Object.entries(allocations).map(([consumer, told]) => ({
    consumer,
    resources: told.resources,
    project: told.project_id ?? "",
    user: told.user_id ?? "",
    type: told.consumer_type ?? "",
    created: told.created_at ?? "",
  }));
}

// The ledger's answers about a request.

export interface Constraint {
  id: string;
  kind: string;
  suffix?: string;
  resource_class?: string;
  value?: string | number | string[];
  text: string;
  before: number;
  after: number;
  /** Missing if the time ran out. */
  alone?: number;
  gain?: number;
  largest?: number;
  serves_at_largest?: number;
}

export interface Unmet {
  id: string;
  /** What the host lacks, as a predicate. */
  text: string;
  needs?: unknown;
  has?: unknown;
  provider?: string;
  capacity?: number;
  used?: number;
  holders?: { consumer: string; amount: number; type?: string | null; project?: string | null }[];
}

export interface Near {
  uuid: string;
  name: string;
  unmet: Unmet[];
}

/** Amounts to ask for instead, and how many hosts serve then. */
export interface Offer {
  amounts: { suffix: string; resource_class: string; amount: number }[];
  serves: number;
}

export interface Change {
  drop: string[];
  serves: number;
  text: string;
  offers: Offer[];
}

export interface Asked {
  uuid: string;
  name: string;
  serves: boolean;
  /** `text` says what it does not meet. */
  constraints: { id: string; met: boolean; text?: string }[];
}

export interface Explanation {
  serves: number;
  hosts: number;
  summary: string;
  constraints: Constraint[];
  changes?: Change[];
  near?: Near[];
  /** The hosts that were asked about. */
  host?: Asked[];
  complete: boolean;
}

export interface Capacity {
  total: number;
  exact: boolean;
  /** False if the time ran out: the count is of what was looked at. */
  complete: boolean;
  hosts: { uuid: string; name: string; count: number }[];
}

export interface Candidates {
  allocation_requests: {
    allocations: Record<string, { resources: Record<string, number> }>;
    mappings: Record<string, string[]>;
  }[];
  provider_summaries: Record<
    string,
    {
      resources: Record<string, { capacity: number; used: number }>;
      root_provider_uuid: string;
      parent_provider_uuid: string | null;
      traits: string[];
    }
  >;
}
