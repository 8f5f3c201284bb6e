// What Now shows of the metrics: panels with lines, each a number for the time between
// two readings.

import { isKnown, quantile, rate, type Reading, type Sample } from "./metrics.ts";

export const REQUESTS = "placement_requests_total";
const DURATIONS = "placement_request_duration_seconds";
const RETRIES = "placement_transaction_retries_total";
const FAILURES = "placement_transaction_failures_total";
const REFRESHES = "placement_forest_refreshes_total";
const STEPS = "placement_step_duration_seconds";

const CANDIDATES = "/allocation_candidates";

type Between = (before: Reading, after: Reading) => number | null;

export interface Panel {
  title: string;
  unit: string;
  /** The metrics without which there is nothing to show. */
  needs: string;
  lines: [string, Between][];
}

const isStatus = (start: string) => (labels: Record<string, string>) => (labels["status"] ?? "").startsWith(start);
const isOf = (operation: string) => (labels: Record<string, string>) => (labels["operation"] ?? "").endsWith(operation);

// Requests that wait for changes take as long as nothing changes.
const WAITING = "/ledger/v1/changes";
const isWaiting = isOf(WAITING);
const isAnswered = (labels: Record<string, string>) => !isWaiting(labels);

function within(metric: string, part: number, chosen?: (labels: Record<string, string>) => boolean): Between {
  return (before, after) => milliseconds(quantile(before, after, metric, part, chosen));
}

export const PANELS: Panel[] = [
  {
    title: "Requests",
    unit: "a second",
    needs: REQUESTS,
    lines: [
      ["all", (before, after) => rate(before, after, REQUESTS)],
      ["for candidates", (before, after) => rate(before, after, REQUESTS, isOf(CANDIDATES))],
    ],
  },
  {
    title: "Time of a request",
    unit: "ms",
    needs: DURATIONS,
    lines: [
      ["half of them", within(DURATIONS, 0.5, isAnswered)],
      ["95 %", within(DURATIONS, 0.95, isAnswered)],
    ],
  },
  {
    title: "Time of a request for candidates",
    unit: "ms",
    needs: DURATIONS,
    lines: [
      ["half of them", within(DURATIONS, 0.5, isOf(CANDIDATES))],
      ["95 %", within(DURATIONS, 0.95, isOf(CANDIDATES))],
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


/** Return the numbers of all lines of all panels between two readings. */
export function evaluate(before: Reading, after: Reading): (number | null)[] {
  return PANELS.flatMap(({ needs, lines }) =>
    lines.map(([, between]) => (isKnown(after, needs) ? between(before, after) : null)),
  );
}

/** Add up what no panel tells apart, so that a reading is small enough to be kept. */
export function reduce({ at, samples }: Reading): Reading {
  const sums = new Map<string, Sample>();
  for (const { name, labels, value } of samples) {
    if (![REQUESTS, DURATIONS, RETRIES, FAILURES, REFRESHES, STEPS].some((each) => name.startsWith(each))) continue;
    const kept: Record<string, string> = {};
    for (const key of ["le", "status"]) if (key in labels) kept[key] = labels[key]!;
    const told = [CANDIDATES, WAITING].find((each) => labels["operation"]?.endsWith(each));
    if (told) kept["operation"] = told;
    if (labels["step"] === "load") kept["step"] = "load";
    const key = name + JSON.stringify(kept);
    const sum = sums.get(key);
    if (sum) sum.value += value;
    else sums.set(key, { name, labels: kept, value });
  }
  return { at, samples: [...sums.values()] };
}
