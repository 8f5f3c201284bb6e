// That the service does not answer at all: said once, above whatever was read before.

import { useEffect, useRef } from "preact/hooks";
import { away } from "../api.ts";
import { useSource } from "../source.ts";

export function Away({ again }: { again: () => void }) {
  const { since } = useSource(away);
  const wasAway = useRef(false);
  useEffect(() => {
    if (!since && wasAway.current) again();
    wasAway.current = since !== null;
  }, [since]);
  if (!since) return null;
  return (
    <p class="stale" role="alert">
      <strong>The service has not answered since {since.toLocaleTimeString()}.</strong> What is shown is what was read before. It is tried
      again every few seconds.
    </p>
  );
}
