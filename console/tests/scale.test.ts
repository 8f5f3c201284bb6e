import assert from "node:assert/strict";
import { test } from "node:test";
import { gather, type Host } from "../src/fleet.ts";
import { makeScale } from "../src/scale.ts";
import { readProvider } from "../src/wire.ts";

/** Hosts that have so many units of memory each. */
function hostsOf(...totals: number[]): Host[] {
  const inventories = (total: number) => ({
    MEMORY_MB: { total, reserved: 0, allocation_ratio: 1, min_unit: 1, max_unit: total, step_size: 1 },
  });
  return gather(
    totals.map((total, n) => readProvider({ uuid: `h${n}`, name: `h${n}`, inventories: inventories(total) })),
  ).hosts;
}

/** What a filter shows of the first host and the others, as amounts of it that are free. */
function shown(hosts: Host[], chosen: string[]): number[] {
  const scale = makeScale(hosts, { kind: "free", of: "MEMORY_MB", chosen });
  return hosts
    .filter((host) => chosen.includes(scale.bins[scale.binOf(host)]!.id))
    .map((host) => host.sums.get("MEMORY_MB")!.free);
}

test("a chosen bin means the same amounts whatever the hosts become", () => {
  const few = hostsOf(100, 600, 1000);
  const bins = makeScale(few, { kind: "free", of: "MEMORY_MB", chosen: [] }).bins.map(({ id }) => id);
  assert.deepEqual(bins.slice(0, 3), ["0", "0-128", "128-256"]);
  assert.deepEqual(shown(few, ["0-128"]), [100]);
  // The usual scale of these would have ranges of 512.
  assert.deepEqual(shown(hostsOf(100, 200, 4000), ["0-128"]), [100]);
  // And that of these ends before the chosen one.
  const one = hostsOf(100, 120);
  assert.deepEqual(shown(one, ["128-256"]), []);
  const { bins: kept } = makeScale(one, { kind: "free", of: "MEMORY_MB", chosen: ["128-256"] });
  assert.equal(kept.at(-2)!.id, "128-256");
});

test("ranges that have become very many end in one for all that is more", () => {
  const scale = makeScale(hostsOf(5, 100_000), { kind: "free", of: "MEMORY_MB", chosen: ["0-1"] });
  assert.equal(scale.bins.length, 43);
  assert.deepEqual(scale.bins.slice(-2).map(({ id }) => id), ["40-", "none"]);
  assert.deepEqual(shown(hostsOf(5, 41, 100_000), ["0-1", "40-"]), [41, 100_000]);
  assert.deepEqual(shown(hostsOf(5, 41, 100_000), ["40-"]), [41, 100_000]);
});

test("what is no range of this scale does not make one", () => {
  const hosts = hostsOf(100, 600, 1000);
  const usual = makeScale(hosts, { kind: "free", of: "MEMORY_MB", chosen: [] }).bins;
  for (const odd of ["3", "5-5", "9-3", "1-3", "-", "0-", "39-", "50-", "0-1e9", "x-y", "0-9999999999999999"]) {
    assert.deepEqual(makeScale(hosts, { kind: "free", of: "MEMORY_MB", chosen: [odd] }).bins, usual, odd);
  }
});

test("shares are known by their number, and hosts without the class by none", () => {
  const { bins } = makeScale(hostsOf(1), { kind: "used", of: "VCPU", chosen: ["0-1"] });
  assert.deepEqual(bins.map(({ id }) => id), ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "none"]);
});
