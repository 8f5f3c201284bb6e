// Documents of the APIs, parsed into values.

import type { Allocation, Provider } from "./fleet.ts";

/** The parts of a fleet that are read only when a view needs them; consumers are allocations with their owners. */
export type Part = "traits" | "allocations" | "consumers";

interface ProviderDocument {
  uuid: string;
  name: string;
  generation?: number;
  parent_provider_uuid?: string | null;
  root_provider_uuid?: string;
  inventories?: Provider["inventories"];
  usages?: Record<string, number>;
  aggregates?: string[];
  traits?: string[];
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

/** Keeps one of equal values: hosts of a model have the same inventories and traits. */
export class Pool {
  private readonly kept = new Map<string, unknown>();

  same<T>(key: string, value: T): T {
    const known = this.kept.get(key);
    if (known !== undefined) return known as T;
    this.kept.set(key, value);
    return value;
  }

  names(values: readonly string[] | undefined): readonly string[] {
    return values?.length ? this.same(values.join(), values) : NOTHING;
  }

  inventories(values: Provider["inventories"] | undefined): Provider["inventories"] {
    if (!values) return NONE;
    let key = "";
    for (const name in values) {
      const { total, reserved, allocation_ratio: ratio, min_unit: least, max_unit: most, step_size: step } = values[name]!;
      key += `${name} ${total} ${reserved} ${ratio} ${least} ${most} ${step};`;
    }
    return this.same(key, values);
  }
}

const NONE = {};

export function readProvider(document: unknown, pool = new Pool()): Provider {
  const told = document as ProviderDocument;
  const { uuid, root_provider_uuid: root = uuid } = told;
  return {
    uuid,
    name: told.name,
    generation: told.generation ?? 0,
    parent: told.parent_provider_uuid ?? null,
    root: root === uuid ? uuid : root,
    inventories: pool.inventories(told.inventories),
    usages: told.usages ?? NONE,
    aggregates: pool.names(told.aggregates),
    traits: pool.names(told.traits),
    allocations: readAllocations(told),
  };
}

/** Add to providers the parts that were left out when they were read. */
export function readParts(
  document: unknown,
  part: Part,
  providers: ReadonlyMap<string, Provider>,
  pool: Pool,
): void {
  const told = document as ProviderDocument;
  const provider = providers.get(told.uuid);
  if (!provider) return;
  if (part === "traits") provider.traits = pool.names(told.traits);
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
  constraints: { id: string; met: boolean; closest?: Omit<Unmet, "id" | "text"> }[];
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
    }
  >;
}
