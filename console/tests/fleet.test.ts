import assert from "node:assert/strict";
import { test } from "node:test";
import { differing, gather, listConsumers } from "../src/fleet.ts";
import { readParts, readProvider, Values } from "../src/wire.ts";

const inventory = (total: number, reserved = 0, ratio = 1) => ({
  total, reserved, allocation_ratio: ratio, min_unit: 1, max_unit: total, step_size: 1,
});

const CLOUD = [
  { uuid: "h10", name: "host10", root_provider_uuid: "h10", inventories: { VCPU: inventory(9, 1, 2.5) }, usages: { VCPU: 6 } },
  { uuid: "h2", name: "host2", root_provider_uuid: "h2", inventories: { DISK_GB: inventory(100) },
    allocations: { one: { resources: { DISK_GB: 5 }, project_id: "p" } } },
  { uuid: "n", name: "numa", root_provider_uuid: "h2", parent_provider_uuid: "h2", inventories: { VCPU: inventory(4) },
    usages: { VCPU: 1 }, allocations: { one: { resources: { VCPU: 1 }, project_id: "p" } } },
];

const fleet = gather(CLOUD.map((each) => readProvider(each)));

test("a host is a root with all that is beneath it", () => {
  assert.deepEqual(fleet.hosts.map(({ root }) => root.name), ["host2", "host10"]);
  assert.deepEqual(fleet.hosts[0]!.providers.map(({ uuid }) => uuid), ["h2", "n"]);
  assert.deepEqual(fleet.hosts[0]!.sums.get("VCPU"), { total: 4, reserved: 0, capacity: 4, used: 1, free: 3 });
});

test("capacity is what is not reserved, times the ratio", () => {
  assert.equal(fleet.hosts[1]!.sums.get("VCPU")!.capacity, 20);
  assert.deepEqual(fleet.classes, [["VCPU", 2], ["DISK_GB", 1]]);
});

test("what one provider uses too much is not missing on another", () => {
  const [root, ...nodes] = [
    { uuid: "r", name: "r" },
    { uuid: "x", name: "x", root_provider_uuid: "r", inventories: { PCPU: inventory(1) }, usages: { PCPU: 8 } },
    { uuid: "y", name: "y", root_provider_uuid: "r", inventories: { PCPU: inventory(8) } },
  ].map((each) => readProvider(each));
  const { hosts, totals } = gather([root!, ...nodes]);
  assert.equal(hosts[0]!.sums.get("PCPU")!.free, 8);
  assert.equal(totals.get("PCPU")!.free, 8);
});

test("a consumer is one, wherever its allocations are", () => {
  const [only, ...others] = listConsumers(fleet);
  assert.deepEqual(others, []);
  assert.deepEqual([...only!.resources], [["DISK_GB", 5], ["VCPU", 1]]);
  assert.equal(only!.hosts.size, 1);
  assert.equal(only!.project, "p");
});

test("another name, parent, root or aggregate is a difference", () => {
  const change = (uuid: string, changes: object) =>
    gather(CLOUD.map((each) => readProvider(each.uuid === uuid ? { ...each, ...changes } : each)));
  assert.deepEqual([...differing(fleet, change("h2", {}))], []);
  assert.deepEqual([...differing(fleet, change("h10", { name: "other" }))], ["h10"]);
  assert.deepEqual([...differing(fleet, change("n", { parent_provider_uuid: "h10" }))], ["h2"]);
  assert.deepEqual([...differing(fleet, change("n", { root_provider_uuid: "h10" }))], ["h10", "h2"]);
  assert.deepEqual([...differing(fleet, change("n", { aggregates: ["x"] }))], ["h2"]);
});

test("a value that was there before is known by its number", () => {
  const answer = new Values();
  const [first, second, third] = [
    { uuid: "a", name: "a", inventories: { VCPU: inventory(4) }, aggregates: [] },
    { uuid: "b", name: "b", inventories: {}, aggregates: ["x"] },
    { uuid: "c", name: "c", inventories: 0, aggregates: 1 },
  ].map((each) => readProvider(each, answer));
  assert.equal(third!.inventories, first!.inventories);
  assert.equal(third!.aggregates, second!.aggregates);
  const parts = new Values();
  const providers = new Map([first!, second!].map((each) => [each.uuid, each]));
  readParts({ uuid: "a", name: "a", traits: ["T"] }, "traits", providers, parts);
  // What is new meanwhile counts as well.
  readParts({ uuid: "new", name: "new", traits: ["U"] }, "traits", providers, parts);
  readParts({ uuid: "b", name: "b", traits: 1 }, "traits", providers, parts);
  assert.deepEqual([first!.traits, second!.traits], [["T"], ["U"]]);
});
