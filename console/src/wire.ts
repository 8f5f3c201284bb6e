// Documents of the APIs, parsed into values.

import type { Allocation, Provider } from "./fleet.ts";

/** The parts of a fleet that are read only when a view needs them. */
export type Part = "traits" | "allocations";

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

export function readProvider(document: unknown): Provider {
  const told = document as ProviderDocument;
  return {
    uuid: told.uuid,
    name: told.name,
    generation: told.generation ?? 0,
    parent: told.parent_provider_uuid ?? null,
    root: told.root_provider_uuid ?? told.uuid,
    inventories: told.inventories ?? {},
    usages: told.usages ?? {},
    aggregates: told.aggregates ?? NOTHING,
    traits: told.traits ?? NOTHING,
    allocations: readAllocations(told),
  };
}

/** Add to providers the parts that were left out when they were read. */
export function readParts(
  document: unknown,
  part: Part,
  providers: ReadonlyMap<string, Provider>,
): void {
  const told = document as ProviderDocument;
  const provider = providers.get(told.uuid);
  if (!provider) return;
  if (part === "traits") provider.traits = told.traits ?? NOTHING;
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

export interface Change {
  drop: string[];
  serves: number;
  text: string;
}

export interface Explanation {
  serves: number;
  hosts: number;
  summary: string;
  constraints: Constraint[];
  changes?: Change[];
  near?: Near[];
  complete: boolean;
}

export interface Capacity {
  total: number;
  exact: boolean;
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
