// The text of `/metrics`, and what changed between two readings of it.

export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

export interface Reading {
  at: number;
  samples: Sample[];
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

export function parse(text: string): Sample[] {
  const samples: Sample[] = [];
  for (const line of text.split("\n")) {
    const found = line.startsWith("#") ? null : LINE.exec(line);
    if (!found) continue;
    const labels: Record<string, string> = {};
    for (const [, name, value] of (found[2] ?? "").matchAll(LABEL)) {
      labels[name!] = value!.replace(/\\(.)/g, (_, c: string) => (c === "n" ? "\n" : c));
    }
    samples.push({ name: found[1]!, labels, value: readNumber(found[3]!) });
  }
  return samples;
}

function readNumber(text: string): number {
  return text === "+Inf" ? Infinity : Number(text);
}

type Chosen = (labels: Record<string, string>) => boolean;

const ALL: Chosen = () => true;

/** The sum of a metric; null if there is no metric with that name. */
export function total({ samples }: Reading, name: string, chosen: Chosen = ALL): number | null {
  const found = samples.filter((sample) => sample.name === name && chosen(sample.labels));
  return found.length ? found.reduce((sum, { value }) => sum + value, 0) : null;
}

export function isKnown({ samples }: Reading, name: string): boolean {
  return samples.some((sample) => sample.name.startsWith(name));
}

/** The increments of a counter per second. After a restart, the service counts from 0. */
export function rate(before: Reading, after: Reading, name: string, chosen?: Chosen): number {
  const now = total(after, name, chosen) ?? 0;
  const then = total(before, name, chosen) ?? 0;
  const seconds = (after.at - before.at) / 1000;
  return seconds > 0 ? (now >= then ? now - then : now) / seconds : 0;
}

/** The time below which a share of the observations lies, from a histogram's buckets. */
export function quantile(
  before: Reading,
  after: Reading,
  name: string,
  part: number,
  chosen: Chosen = ALL,
): number | null {
  const counts = new Map<number, number>();
  for (const [reading, sign] of [[after, 1], [before, -1]] as const) {
    for (const { name: each, labels, value } of reading.samples) {
      if (each !== `${name}_bucket` || !chosen(labels)) continue;
      const edge = readNumber(labels["le"] ?? "");
      counts.set(edge, (counts.get(edge) ?? 0) + sign * value);
    }
  }
  return within([...counts].sort((a, b) => a[0] - b[0]), part);
}

function within(buckets: [number, number][], part: number): number | null {
  const all = buckets.at(-1)?.[1] ?? 0;
  if (!(all > 0)) return null;
  let lower = 0;
  let below = 0;
  for (const [edge, reached] of buckets) {
    if (reached >= part * all) {
      if (edge === Infinity) return lower;
      return lower + ((edge - lower) * (part * all - below)) / Math.max(1, reached - below);
    }
    [lower, below] = [edge, reached];
  }
  return lower;
}
