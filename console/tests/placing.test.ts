import assert from "node:assert/strict";
import { test } from "node:test";
import { keepNames } from "../src/name.ts";
import { bodyOf, undoOf, type Placed, type Wishes } from "../src/placing.ts";

const RACK = "6f3d3c1a-90a2-4b4e-8e0e-0d4f6a1f7b01";
const PLAIN: Wishes = {
  number: "2", project: "web", user: "ann", type: "INSTANCE", atLeast: "", spread: "", atMost: "", together: "",
  aggregates: "", prefer: "", lease: "",
};
const body = (wishes: Partial<Wishes>) => bodyOf("resources=VCPU:1", { ...PLAIN, ...wishes }, ["a"], true);

test("what is wished for becomes a request", () => {
  keepNames({ aggregates: { [RACK]: "rack 1" }, projects: { p: "web" } });
  const plain = { query: "resources=VCPU:1", consumers: ["a"], project_id: "p", user_id: "ann", consumer_type: "INSTANCE", dry_run: true };
  assert.deepEqual(body({}), plain);
  assert.deepEqual(
    body({ atLeast: "1", spread: "aggregates", atMost: "2", together: "host", aggregates: "rack 1", prefer: "trait=CUSTOM_SSD:2, free=VCPU:-0.5, aggregate=rack 1", lease: "300" }),
    {
      ...plain,
      at_least: 1,
      spread: { per: { aggregates: [RACK] }, at_most: 2 },
      together: "host",
      prefer: [{ trait: "CUSTOM_SSD", weight: 2 }, { free: "VCPU", weight: -0.5 }, { aggregate: RACK, weight: 1 }],
      lease_seconds: 300,
    },
  );
});

test("what cannot be wished for is a sentence", () => {
  for (const [wishes, reason] of [
    [{ spread: "aggregates" }, /aggregates are missing/],
    [{ together: "aggregates", aggregates: "rack 7" }, /the name rack 7/],
    [{ spread: "host", together: "host" }, /exclude each other/],
    [{ prefer: "ssd" }, /“ssd” is no preference/],
    [{ prefer: "free=VCPU:0" }, /The weight 0/],
  ] as [Partial<Wishes>, RegExp][]) {
    assert.match(String(body(wishes)), reason);
  }
});

test("only what was placed anew is given back", () => {
  const placed = { host: "h", name: "h", allocations: {}, expires_at: null };
  const placements: Placed[] = [
    { ...placed, consumer: "a", existed: false, consumer_generation: 1 },
    { ...placed, consumer: "b", existed: true, consumer_generation: 4 },
  ];
  assert.deepEqual(undoOf(placements, PLAIN), {
    a: { allocations: {}, consumer_generation: 1, project_id: "p", user_id: "ann", consumer_type: "INSTANCE" },
  });
});
