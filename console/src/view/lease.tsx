// Leases in the views of others.

import { useEffect, useState } from "preact/hooks";
import { readLeases, RULE, type Leases } from "../lease.ts";
import { session } from "../session.ts";
import { useSource } from "../source.ts";

/** Return leases; null until they are read, and for those who may not see them. */
export function useLeases(filters: Record<string, string>, times: unknown): Leases | null {
  const [found, setFound] = useState<Leases | null>(null);
  const isDenied = useSource(session).denied.has(RULE);
  const asked = JSON.stringify(filters);
  useEffect(() => {
    const control = new AbortController();
    if (isDenied) return () => {};
    readLeases(filters, control.signal).then(setFound, () => control.signal.aborted || setFound(null));
    return () => control.abort();
  }, [asked, times, isDenied]);
  return found;
}

export function Until({ time }: { time: string }) {
  return (
    <time dateTime={time} title={time}>
      {new Date(time).toLocaleString()}
    </time>
  );
}
