// Now: what the service does, from the difference between readings of `/metrics`.

import { useEffect } from "preact/hooks";
import { isKnown, quantile, rate, total, type Reading } from "../metrics.ts";
import { again, EVERY_SECONDS, readings, watch } from "../poll.ts";
import { useSource } from "../source.ts";
import { count } from "../unit.ts";
import { Failed, Loading } from "./part.tsx";
import { Plot, type Line } from "./plot.tsx";

const REQUESTS = "placement_requests_total";
const DURATIONS = "placement_request_duration_seconds";
const RETRIES = "placement_transaction_retries_total";
const FAILURES = "placement_transaction_failures_total";
const REFRESHES = "placement_forest_refreshes_total";
const STEPS = "placement_step_duration_seconds";

type Between = (before: Reading, after: Reading) => number | null;

interface Panel {
  title: string;
  unit: string;
  /** The metrics without which there is nothing to show. */
  needs: string;
  lines: [string, Between][];
}

const isStatus = (start: string) => (labels: Record<string, string>) => (labels["status"] ?? "").startsWith(start);
const isOf = (operation: string) => (labels: Record<string, string>) => (labels["operation"] ?? "").endsWith(operation);

function within(metric: string, part: number, chosen?: (labels: Record<string, string>) => boolean): Between {
  return (before, after) => milliseconds(quantile(before, after, metric, part, chosen));
}

const PANELS: Panel[] = [
  {
    title: "Requests",
    unit: "a second",
    needs: REQUESTS,
    lines: [
      ["all", (before, after) => rate(before, after, REQUESTS)],
      ["for candidates", (before, after) => rate(before, after, REQUESTS, isOf("/allocation_candidates"))],
    ],
  },
  {
    title: "Time of a request",
    unit: "ms",
    needs: DURATIONS,
    lines: [
      ["half of them", within(DURATIONS, 0.5)],
      ["95 %", within(DURATIONS, 0.95)],
    ],
  },
  {
    title: "Time of a request for candidates",
    unit: "ms",
    needs: DURATIONS,
    lines: [
      ["half of them", within(DURATIONS, 0.5, isOf("/allocation_candidates"))],
      ["95 %", within(DURATIONS, 0.95, isOf("/allocation_candidates"))],
    ],
  },
  {
    title: "Refused",
    unit: "a second",
    needs: REQUESTS,
    lines: [
      ["conflicts (409)", (before, after) => rate(before, after, REQUESTS, isStatus("409"))],
      ["failed (5xx)", (before, after) => rate(before, after, REQUESTS, isStatus("5"))],
    ],
  },
  {
    title: "Transactions",
    unit: "a second",
    needs: RETRIES,
    lines: [
      ["begun anew", (before, after) => rate(before, after, RETRIES)],
      ["failed", (before, after) => rate(before, after, FAILURES)],
    ],
  },
  {
    title: "Refreshes of the providers in memory",
    unit: "a second",
    needs: REFRESHES,
    lines: [["all", (before, after) => rate(before, after, REFRESHES)]],
  },
  {
    title: "Time to refresh the providers in memory",
    unit: "ms",
    needs: STEPS,
    lines: [
      ["half of the times", within(STEPS, 0.5, ({ step }) => step === "load")],
      ["95 %", within(STEPS, 0.95, ({ step }) => step === "load")],
    ],
  },
];

function milliseconds(seconds: number | null): number | null {
  return seconds === null ? null : seconds * 1000;
}

export function NowView() {
  const { taken, failure } = useSource(readings);
  useEffect(watch, []);
  const last = taken.at(-1);
  if (!last && failure?.status === 404) return <Off />;
  if (!last && failure) return <Failed failure={failure} retry={again} />;
  if (!last) return <Loading what="the metrics" />;
  const known = PANELS.filter(({ needs }) => isKnown(last, needs));
  return (
    <>
      {failure && <Failed failure={failure} retry={again} />}
      {!known.length && <p class="state">The service reports no metrics that the console knows.</p>}
      <div class="panels">
        {known.map((panel) => (
          <PanelView key={panel.title} panel={panel} taken={taken} />
        ))}
      </div>
      {known.length > 0 && (
        <p class="dim">
          Read every {EVERY_SECONDS} seconds; {count(total(last, REQUESTS) ?? 0)} requests since
          the service began.
        </p>
      )}
    </>
  );
}

function Off() {
  return (
    <p class="state">
      The service reports no metrics. <code>[metrics] enabled = true</code> in its configuration switches them on.
    </p>
  );
}

function PanelView({ panel, taken }: { panel: Panel; taken: readonly Reading[] }) {
  const lines: Line[] = panel.lines.map(([name, between]) => ({
    name,
    points: taken.slice(1).map((after, place) => ({ at: after.at, value: between(taken[place]!, after) })),
  }));
  return <Plot title={panel.title} unit={panel.unit} lines={lines} />;
}
