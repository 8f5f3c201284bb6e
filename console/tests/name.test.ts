import assert from "node:assert/strict";
import { test } from "node:test";
import { arrange } from "../src/arrange.ts";
import { parseFind } from "../src/find.ts";
import { gather } from "../src/fleet.ts";
import { forgetNames, idOf, keepNames, nameOf, names, shared, split } from "../src/name.ts";
import { makeScale } from "../src/scale.ts";
import { readProvider } from "../src/wire.ts";

const RACK = "5c1f0000-0000-4000-8000-000000000017";
const OTHER = "5c1f0000-0000-4000-8000-000000000018";
const PROJECT = "9f3100000000400080000000000000aa";
const given = { aggregates: { [RACK]: "Rack 17" }, projects: { [PROJECT]: "Größe", __proto__x: "odd", web: "shop" } };

test("a name stands for what it was given to", () => {
  keepNames(given);
  assert.equal(nameOf("aggregates", RACK), "Rack 17");
  assert.equal(nameOf("projects", RACK), "");
  assert.equal(nameOf("projects", "constructor"), "");
  assert.equal(idOf("aggregates", " rack 17 "), RACK);
  assert.equal(idOf("projects", "nobody "), "nobody");
});

test("a name that could be of several things stands for none of them", () => {
  keepNames({ aggregates: {}, projects: { one: "Web", two: "web", three: "Shop", four: "Shop" } });
  assert.equal(idOf("projects", "Web"), "one");
  assert.equal(idOf("projects", "web"), "two");
  assert.equal(idOf("projects", "WEB"), "WEB");
  assert.equal(idOf("projects", " Shop "), "Shop");
  assert.deepEqual([...shared(names.value.projects)], ["Shop"]);
});

test("a UUID in a sentence is found if it has a name", () => {
  keepNames(given);
  assert.deepEqual(split(`in ${RACK}, of ${PROJECT}`), ["in ", RACK, ", of ", PROJECT, ""]);
  assert.deepEqual(split(`in ${OTHER}`), [`in ${OTHER}`]);
  forgetNames();
  assert.deepEqual(split(`in ${RACK}`), [`in ${RACK}`]);
});

const { hosts } = gather(
  [
    { uuid: "a1", name: "one", aggregates: [RACK], allocations: { x: { resources: {}, project_id: PROJECT } } },
    { uuid: "b2", name: "two", aggregates: [OTHER] },
  ].map((each) => readProvider(each)),
);

test("hosts are found by names of aggregates and projects", () => {
  keepNames(given);
  const find = (text: string) => hosts.filter(parseFind(text).test).map(({ root }) => root.uuid);
  assert.deepEqual(find('aggregate:"rack 17"'), ["a1"]);
  assert.deepEqual(find("aggregate:rack*"), ["a1"]);
  assert.deepEqual(find("aggregate:5c1f"), ["a1", "b2"]);
  assert.deepEqual(find("project:größe"), ["a1"]);
  assert.deepEqual(find(`project:${PROJECT}`), ["a1"]);
  assert.deepEqual(find("not project:größe"), ["b2"]);
});

test("aggregates are apart, however they are called", () => {
  keepNames({ aggregates: { [RACK]: "rack", [OTHER]: "rack" }, projects: {} });
  const scale = makeScale(hosts, { kind: "aggregate", of: RACK, chosen: [] });
  assert.equal(scale.title, "is in rack");
  const blocks = arrange(hosts, { group: "aggregate", sort: "name" }, scale);
  assert.deepEqual(blocks.map(({ id, label }) => [id, label]).sort(), [[RACK, "rack"], [OTHER, "rack"]].sort());
});
