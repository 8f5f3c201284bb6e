import assert from "node:assert/strict";
import { test } from "node:test";
import { gather } from "../src/fleet.ts";
import { inNames, parseFind, save, saved } from "../src/find.ts";
import { readProvider } from "../src/wire.ts";

const VCPU = { total: 8, reserved: 0, allocation_ratio: 1, min_unit: 1, max_unit: 8, step_size: 1 };
const { hosts } = gather(
  [
    { uuid: "a1", name: "rack1-one", traits: ["CUSTOM_SSD", "HW_A"], inventories: { VCPU }, aggregates: ["aa-1"] },
    { uuid: "b2", name: "rack1-two", traits: ["HW_A"], aggregates: ["bb-2"] },
    { uuid: "c3", name: "and more", allocations: { x: { resources: {}, project_id: "Web" } } },
  ].map((each) => readProvider(each)),
);

function find(text: string): string[] {
  const { test: isFound, fault } = parseFind(text);
  assert.equal(fault, "", text);
  return hosts.filter(isFound).map(({ root }) => root.uuid).sort();
}

test("hosts are found by what they are", () => {
  assert.deepEqual(find(""), ["a1", "b2", "c3"]);
  assert.deepEqual(find("RACK1"), ["a1", "b2"]);
  assert.deepEqual(find("trait:custom_ssd"), ["a1"]);
  assert.deepEqual(find("trait:HW_*"), ["a1", "b2"]);
  assert.deepEqual(find("class:VCPU or project:web"), ["a1", "c3"]);
  assert.deepEqual(find("aggregate:bb"), ["b2"]);
});

test("and binds closer than or, not closer than both", () => {
  assert.deepEqual(find("trait:HW_A not trait:CUSTOM_SSD"), ["b2"]);
  assert.deepEqual(find("trait:HW_A and not (one or two)"), []);
  assert.deepEqual(find("one or two and trait:CUSTOM_SSD"), ["a1"]);
  assert.deepEqual(find("(one or two) and trait:HW_A"), ["a1", "b2"]);
  assert.deepEqual(find('"and more"'), ["c3"]);
  assert.deepEqual(find('name:"and more" or one'), ["a1", "c3"]);
});

test("what is not understood is said", () => {
  assert.match(parseFind("(one").fault, /not closed/);
  assert.match(parseFind("one and").fault, /missing at the end/);
  assert.match(parseFind("or one").fault, /missing before/);
  assert.match(parseFind("one )").fault, /not expected/);
  assert.match(parseFind('"one').fault, /quotation mark/);
});

test("what is before a colon may be part of a name", () => {
  assert.deepEqual(find("constructor:x"), []);
  assert.deepEqual(find("toString:x or one"), ["a1"]);
});

test("searches are saved as far as the browser lets them be", () => {
  const kept = new Map<string, string>();
  const storage = {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, text: string) => void kept.set(key, text),
    removeItem: (key: string) => void kept.delete(key),
  };
  Object.assign(globalThis, { localStorage: storage });
  assert.ok(save("mine", "rack1"));
  assert.deepEqual(saved(), { mine: "rack1" });
  storage.setItem = () => {
    throw new Error("full");
  };
  assert.ok(!save("other", "rack2"));
  assert.deepEqual(saved(), { mine: "rack1" });
  for (const text of ["null", "7", "{"]) {
    kept.set("placement-searches", text);
    assert.deepEqual(Object.keys(saved()), []);
  }
});

test("only what is needed is read", () => {
  assert.deepEqual(parseFind("one").parts, []);
  assert.deepEqual(parseFind("trait:a or project:b").parts, ["traits", "consumers"]);
});

test("a text that is in a name finds it", () => {
  const names = ["gpu (a)", "gpu (b)", "storage", "trait:odd", "one two", 'a "b" c'];
  const all = gather(names.map((name) => readProvider({ uuid: name, name }))).hosts;
  const found = (text: string) => all.filter(parseFind(inNames(text)).test).map(({ root }) => root.name);
  assert.deepEqual(found("gpu ("), ["gpu (a)", "gpu (b)"]);
  assert.deepEqual(found("(b)"), ["gpu (b)"]);
  assert.deepEqual(found("or"), ["storage"]);
  assert.deepEqual(found("trait:o"), ["trait:odd"]);
  assert.deepEqual(found("e t"), ["one two"]);
  assert.equal(inNames("gpu"), "gpu");
});
