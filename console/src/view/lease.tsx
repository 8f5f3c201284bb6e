// Leases in the views of others.

import { readLeases, RULE, type Leases } from "../lease.ts";
import { session } from "../session.ts";
import { useSource } from "../source.ts";
import { when } from "../unit.ts";
import { useReading, type Reading } from "./reading.tsx";

/** Read leases; there are none for those who may not see them. */
export function useLeases(filters: (() => Record<string, string>) | null, question: string, times: unknown): Reading<Leases> {
  const isDenied = useSource(session).denied.has(RULE);
  const read = isDenied || !filters ? null : (signal: AbortSignal) => readLeases(filters(), signal);
  return useReading(`ledger/v1/leases ${question}`, read, times);
}

export function Until({ time }: { time: string | null }) {
  if (!time) return <>–</>;
  return (
    <time dateTime={time} title={time}>
      {when(time)}
    </time>
  );
}
