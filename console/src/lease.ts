// Leases: until when consumers keep what they have.

import { get } from "./api.ts";

export const RULE = "placement:ledger:leases:list";

export interface Lease {
  consumer: string;
  expires_at: string;
  project_id: string;
  consumer_type: string | null;
}

interface Page {
  leases: Lease[];
  marker: string | null;
}

const PAGES = 5;

export interface Leases {
  /** Those that end first come first. */
  found: Lease[];
  /** Whether there are more of them. */
  isWhole: boolean;
}

/** Read leases: of one project, or that end before a time, or all. */
export async function readLeases(filters: Record<string, string>, signal: AbortSignal): Promise<Leases> {
  const found: Lease[] = [];
  let marker: string | null = null;
  for (let page = 0; page < PAGES; page += 1) {
    const query: URLSearchParams = new URLSearchParams({ ...filters, ...(marker ? { marker } : {}) });
    const answer: Page = await get<Page>(`ledger/v1/leases?${query}`, { signal });
    found.push(...answer.leases);
    marker = answer.marker;
    if (!marker) break;
  }
  return { found, isWhole: !marker };
}
