// What the colour of a host means: a number for each host, in bins that the legend counts.

import { has, isIn, type Host, type Sum } from "./fleet.ts";
import { nameOf } from "./name.ts";
import { amount, count, isBinary, percent, plural, short, usedOf } from "./unit.ts";

export const KINDS = ["used", "free", "reserved", "consumers", "trait", "aggregate", "question"] as const;
export type Kind = (typeof KINDS)[number];

export interface Choice {
  kind: Kind;
  /** The resource class, trait or aggregate that the choice is about. */
  of: string;
  /** How many times the current question fits, by host. */
  fits?: ReadonlyMap<string, number> | undefined;
  /** The bins that a reader has chosen, by ``id``. */
  chosen: readonly string[];
}

export interface Bin {
  /** What its hosts have, in an address: it means the same whatever the hosts become. */
  id: string;
  label: string;
  /** How strong its colour is, from 0 to 1; null for hosts to which it does not apply. */
  shade: number | null;
  /** Whether more is used than there is. */
  over?: boolean;
}

export interface Scale {
  title: string;
  bins: Bin[];
  valueOf: (host: Host) => number | null;
  binOf: (host: Host) => number;
  shadeOf: (host: Host) => number | null;
  tell: (host: Host) => string;
  /** Whether a host uses more than it has. */
  isOver: (host: Host) => boolean;
}

const PARTS = 10;
/** How many bins there may be if a reader has chosen some when amounts were smaller. */
const MOST = 4 * PARTS;

export function makeScale(hosts: readonly Host[], choice: Choice): Scale {
  switch (choice.kind) {
    case "used":
    case "reserved":
      return makeShare(choice.kind, choice.of);
    case "trait":
      return makeYesNo(`has ${choice.of || "…"}`, (host) => has(host, choice.of));
    case "aggregate":
      return makeYesNo(`is in ${nameOf("aggregates", choice.of) || short(choice.of) || "…"}`, (host) => isIn(host, choice.of));
    default:
      return makeAmount(hosts, choice);
  }
}

function makeShare(kind: "used" | "reserved", name: string): Scale {
  const whole = (sum: Sum) => (kind === "used" ? sum.capacity : sum.total);
  const valueOf = (host: Host) => {
    const sum = host.sums.get(name);
    if (!sum) return null;
    if (whole(sum) > 0) return sum[kind] / whole(sum);
    return sum[kind] > 0 ? Infinity : null;
  };
  const bins = Array.from({ length: PARTS }, (_, n): Bin => ({
    id: String(n),
    label: `${n * PARTS}–${(n + 1) * PARTS}\u202f%`,
    shade: (n + 0.5) / PARTS,
  }));
  bins.push({ id: String(PARTS), label: `over 100\u202f%`, shade: 1, over: true });
  const missing = (host: Host) => {
    const sum = host.sums.get(name);
    return sum ? usedOf(name, sum.used, sum.capacity, sum.total) : `no ${name}`;
  };
  return finish(`${name} ${kind}`, bins, `no ${name}`, valueOf, {
    binOf: (value) => (value > 1 ? PARTS : Math.min(PARTS - 1, Math.floor(value * PARTS))),
    isOver: (value) => value > 1,
    shadeOf: (value) => Math.min(1, value),
    tell: (_, host) => {
      const sum = host.sums.get(name)!;
      if (whole(sum) <= 0) return missing(host);
      const over = sum[kind] > whole(sum) ? `${amount(name, sum[kind])} ${kind}, over capacity: ` : "";
      return `${over}${percent(sum[kind], whole(sum))} of ${amount(name, whole(sum))} ${kind}`;
    },
    without: missing,
  });
}

function makeYesNo(title: string, test: (host: Host) => boolean): Scale {
  const bins = ["no", "yes"].map((label, n): Bin => ({ id: String(n), label, shade: n }));
  return finish(title, bins, "", (host) => Number(test(host)), {
    binOf: (value) => value,
    shadeOf: (value) => value,
    tell: (value) => (value ? title : `not: ${title}`),
  });
}

function makeAmount(hosts: readonly Host[], { kind, of, fits, chosen }: Choice): Scale {
  const valueOf = (host: Host) => {
    if (kind === "consumers") return host.root.treeConsumers;
    if (kind === "question") return fits?.get(host.root.uuid) ?? 0;
    const sum = host.sums.get(of);
    return sum?.free ?? null;
  };
  const most = hosts.reduce((most, host) => Math.max(most, valueOf(host) ?? 0), 0);
  const usual = kind === "free" && isBinary(of) ? 2 ** Math.ceil(Math.log2(Math.max(1, most / PARTS))) : niceStep(most);
  const { step, last } = rangesOf(chosen) ?? { step: usual, last: 0 };
  const end = Math.min(Math.max(most, last), MOST * step);
  const write = (value: number) => (kind === "free" ? amount(of, value) : count(value));
  const bins: Bin[] = [{ id: "0", label: "0", shade: 0 }];
  for (let from = 0; from < end; from += step) {
    const label = step === 1 ? write(from + 1) : `up to ${write(from + step)}`;
    bins.push({ id: `${from}-${from + step}`, label, shade: Math.min(1, (from + step) / most) });
  }
  if (most > end) bins.push({ id: `${end}-`, label: `more than ${write(end)}`, shade: 1 });
  const titles = { consumers: "consumers", question: "times the question fits" };
  const title = kind in titles ? titles[kind as keyof typeof titles] : `${of} free`;
  const told = { consumers: "consumer", question: "time" };
  return finish(title, bins, `no ${of}`, valueOf, {
    binOf: (value) => Math.ceil(Math.min(value / step, MOST + 1)),
    shadeOf: (value) => (most ? value / most : 0),
    tell: (value) => {
      if (kind === "question") return value ? `fits ${plural(value, told.question)}` : "does not fit";
      return kind === "consumers" ? plural(value, told.consumers) : `${write(value)} free`;
    },
  });
}

/** How wide the ranges among the chosen bins are, and where they end; null if there are none. */
function rangesOf(chosen: readonly string[]): { step: number; last: number } | null {
  const ranges = chosen.flatMap((id) => {
    const [, from = "", to = ""] = /^(\d{1,15})-(\d{0,15})$/.exec(id) ?? [];
    // The one that is open has all the others before it.
    const step = to ? Number(to) - Number(from) : Number(from) / MOST;
    return Number.isInteger(step) && step > 0 && Number(from) % step === 0 ? [{ step, last: Number(to || from) }] : [];
  });
  const step = ranges[0]?.step;
  return step ? { step, last: Math.max(...ranges.filter((each) => each.step === step).map(({ last }) => last)) } : null;
}

function niceStep(most: number): number {
  const rough = Math.max(1, most / PARTS);
  const power = 10 ** Math.floor(Math.log10(rough));
  const nice = [1, 2, 5, 10].find((factor) => factor * power >= rough)!;
  return Math.max(1, nice * power);
}

interface Numbers {
  binOf: (value: number) => number;
  shadeOf: (value: number) => number;
  tell: (value: number, host: Host) => string;
  isOver?: (value: number) => boolean;
  /** What is said of a host without a value, if it is not the same of all. */
  without?: (host: Host) => string;
}

function finish(
  title: string,
  bins: Bin[],
  missing: string,
  valueOf: Scale["valueOf"],
  of: Numbers,
): Scale {
  const last = bins.length;
  const or = <T>(host: Host, what: (value: number, host: Host) => T, none: T): T => {
    const value = valueOf(host);
    return value === null ? none : what(value, host);
  };
  return {
    title,
    bins: missing ? [...bins, { id: "none", label: missing, shade: null }] : bins,
    valueOf,
    binOf: (host) => or(host, of.binOf, last),
    shadeOf: (host) => or<number | null>(host, of.shadeOf, null),
    tell: (host) => or(host, of.tell, of.without?.(host) ?? missing),
    isOver: (host) => or(host, of.isOver ?? (() => false), false),
  };
}

/** Colours from faint to strong, a hundred steps between the stops. */
export function ramp(stops: readonly string[]): string[] {
  const known = stops.map(channels);
  return Array.from({ length: 101 }, (_, n) => {
    const place = (n / 100) * (known.length - 1);
    const left = known[Math.floor(place)]!;
    const right = known[Math.ceil(place)]!;
    const mixed = left.map((each, i) => Math.round(each + (right[i]! - each) * (place % 1)));
    return `rgb(${mixed.join(" ")})`;
  });
}

function channels(text: string): number[] {
  const hex = text.trim();
  return [1, 3, 5].map((start) => parseInt(hex.slice(start, start + 2), 16));
}
