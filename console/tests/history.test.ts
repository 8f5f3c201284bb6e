import assert from "node:assert/strict";
import { test } from "node:test";
import { goBack, group, knownSince, periodOf, tell, tellGroup, who, type Entry } from "../src/history.ts";

function entry(type: string, minute: number, more: Partial<Entry>): Entry {
  const time = new Date(Date.UTC(2026, 10, 21, 10, minute)).toISOString();
  return { id: `${minute}`, time, type, subject: "s", root: null, cursor: "a.1.b", before: null, after: null, ...more };
}

const inventory = (total: number) => ({
  VCPU: { total, reserved: 0, allocation_ratio: 2, min_unit: 1, max_unit: 9, step_size: 1 },
});

test("an entry says what was and what is", () => {
  const claim = entry("allocations.changed", 1, { before: {}, after: { p: { VCPU: 4 } }, names: { p: "compute-7" } });
  assert.deepEqual(tell(claim), ["compute-7: VCPU 0 → 4"]);
  assert.deepEqual(tell(entry("inventory.changed", 1, { before: inventory(4), after: inventory(8) })), ["VCPU: total 4 → 8"]);
  assert.deepEqual(tell(entry("traits.changed", 1, { after: { added: ["A"], removed: ["B", "C"] } })), [
    "traits added: A",
    "traits removed: B, C",
  ]);
  assert.deepEqual(tell(entry("provider.updated", 1, { before: { name: "a" }, after: { name: "b" } })), ["name a → b"]);
  assert.deepEqual(tell(entry("provider.deleted", 1, { before: { name: "a" } })), ["deleted: a"]);
  assert.match(tell(entry("journal.gap", 1, {}))[0]!, /not recorded/);
});

test("who is named as the service knows it", () => {
  assert.equal(who(entry("a.b", 1, { user_id: "u", user_name: "nova", project_name: "service" })), "nova (service)");
  assert.equal(who(entry("a.b", 1, {})), "");
});

const NOW = { at: Date.UTC(2026, 10, 21, 11), capacity: 20, used: 6 };

test("earlier levels are those that the entries lead back to", () => {
  const entries = [
    entry("allocations.changed", 30, { before: { p: { VCPU: 4 } }, after: { p: { VCPU: 6 } } }),
    entry("inventory.changed", 20, { before: inventory(4), after: inventory(10) }),
    entry("allocations.changed", 10, { before: {}, after: { p: { VCPU: 4 }, q: { DISK_GB: 9 } } }),
  ];
  const levels = goBack(entries, "VCPU", NOW);
  assert.deepEqual([levels[0]!.capacity, levels[0]!.used], [8, 0]);
  assert.deepEqual(
    levels.map(({ used }) => used),
    [0, 4, 4, 4, 4, 6, 6],
  );
});

test("a deleted provider had its inventories until it was deleted", () => {
  const entries = [
    entry("provider.deleted", 30, { before: { name: "s" } }),
    entry("inventory.changed", 20, { before: {}, after: inventory(5) }),
  ];
  const levels = goBack(entries, "VCPU", NOW);
  assert.deepEqual(
    levels.map(({ capacity }) => capacity),
    [20, 30, 30, 20, 20],
  );
});

test("nothing is said of what was before a gap", () => {
  const entries = [
    entry("allocations.changed", 30, { before: {}, after: { p: { VCPU: 6 } } }),
    entry("journal.gap", 20, {}),
    entry("allocations.changed", 10, { before: {}, after: { p: { VCPU: 1 } } }),
  ];
  const levels = goBack(entries, "VCPU", NOW);
  assert.equal(levels[0]!.used, 0);
  assert.equal(levels.length, 3);
  const begins = Date.UTC(2026, 10, 21, 9);
  assert.equal(knownSince(entries, begins), Date.UTC(2026, 10, 21, 10, 20));
  assert.equal(knownSince(entries.slice(0, 1), begins), begins);
});

test("a placement of many is one group", () => {
  const claim = (request_id: string, subject: string) =>
    entry("allocations.changed", 1, { request_id, subject, after: { p: { VCPU: 2, MEMORY_MB: 1024 } } });
  const groups = group([claim("r1", "a"), claim("r1", "b"), entry("traits.changed", 2, {}), entry("traits.changed", 3, {}), claim("r2", "c")]);
  assert.deepEqual(groups.map((each) => each.length), [2, 1, 1, 1]);
  assert.equal(tellGroup(groups[0]!), "2 consumers: +4 VCPU, +2\u202fGiB MEMORY_MB");
  assert.equal(tellGroup([entry("traits.changed", 2, {}), entry("provider.created", 2, {})]), "2 changes");
});

test("last night is over, or not", () => {
  const evening = new Date(2026, 10, 20, 20).toISOString();
  assert.deepEqual(periodOf("night", new Date(2026, 10, 21, 9)), { from: evening, to: new Date(2026, 10, 21, 8).toISOString() });
  assert.deepEqual(periodOf("night", new Date(2026, 10, 21, 3)), { from: evening, to: null });
  assert.deepEqual(periodOf("hour", new Date("2026-11-21T10:00:00Z")), { from: "2026-11-21T09:00:00.000Z", to: null });
  assert.deepEqual(periodOf("week", new Date("2026-11-21T10:00:00Z")), { from: "2026-11-14T10:00:00.000Z", to: null });
});
