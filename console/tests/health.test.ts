import assert from "node:assert/strict";
import { test } from "node:test";
import { gather, SHARING } from "../src/fleet.ts";
import { audited, countBad, drifting, ending, examine, summarise } from "../src/health.ts";
import { readProvider } from "../src/wire.ts";

const inventory = (total: number, reserved = 0) =>
  ({ total, reserved, allocation_ratio: 1, min_unit: 1, max_unit: total, step_size: 1 });
const CLOUD = [
  { uuid: "a", name: "over", inventories: { VCPU: inventory(4) }, usages: { VCPU: 8 }, aggregates: ["rack"] },
  { uuid: "b", name: "disabled", inventories: { VCPU: inventory(8) }, usages: { VCPU: 2 }, traits: ["COMPUTE_STATUS_DISABLED"] },
  { uuid: "c", name: "stranded", inventories: { VCPU: inventory(8), MEMORY_MB: inventory(1000) }, usages: { VCPU: 8, MEMORY_MB: 100 } },
  { uuid: "d", name: "idle", inventories: { DISK_GB: inventory(8) }, usages: { DISK_GB: 0 }, traits: [SHARING], aggregates: ["rack"] },
  { uuid: "e", name: "lost", inventories: { DISK_GB: inventory(8) }, usages: { DISK_GB: 0 }, traits: [SHARING] },
  { uuid: "f", name: "bare" },
  { uuid: "g", name: "fine", inventories: { VCPU: inventory(8), MEMORY_MB: inventory(1000) }, usages: { VCPU: 4, MEMORY_MB: 100 } },
];

test("what deserves attention is found, and nothing else", () => {
  const concerns = examine(gather(CLOUD.map((each) => readProvider(each))));
  const found = Object.fromEntries(concerns.map(({ id, found }) => [id, found.map(({ name, text }) => `${name}: ${text}`)]));
  assert.deepEqual(found, {
    over: ["over: 8 of 4 VCPU used"],
    full: ["over: VCPU full", "stranded: VCPU full"],
    "nearly-full": [],
    disabled: ["disabled: 6 VCPU free"],
    stranded: ["stranded: 900\u202fMiB free, 90\u202f% of its memory"],
    pools: ["lost: shares with no host: it has no aggregate in common with any", "idle: nothing of it is used"],
    empty: ["bare: 1 provider without inventory"],
  });
});

test("what is full is counted by class", () => {
  const host = (name: string, vcpu: number, memory: number) =>
    readProvider({ uuid: name, name, inventories: { VCPU: inventory(10), MEMORY_MB: inventory(100) }, usages: { VCPU: vcpu, MEMORY_MB: memory } });
  const concerns = examine(gather([host("a", 10, 100), host("b", 10, 95), host("c", 1, 90), host("d", 8, 80)]));
  const [, full, nearly] = concerns;
  assert.equal(full!.meaning, "hosts with nothing free: VCPU on 2 hosts, MEMORY_MB on 2 hosts, several at once on 2 hosts");
  assert.deepEqual(full!.found.map(({ text }) => text), ["VCPU full, MEMORY_MB full", "VCPU full, MEMORY_MB 95\u202f%"]);
  assert.deepEqual(nearly!.found.map(({ text }) => text), ["MEMORY_MB 90\u202f%"]);
  assert.deepEqual(summarise(concerns), ["Nothing is to be mended.", "Worth knowing: 2 full, 1 nearly full."]);
  assert.equal(countBad(examine(gather(CLOUD.map((each) => readProvider(each))))), 1);
});

test("leases say how long they last", () => {
  const now = new Date("2026-11-21T10:00:00Z");
  const lease = { consumer: "c", expires_at: "2026-11-21T10:04:30Z", project_id: "web", consumer_type: "INSTANCE" };
  assert.equal(ending([lease], now).found[0]!.text, "INSTANCE of web, ends in 5 minutes");
});

test("audits say what they found and how much more there is", () => {
  const [orphans, missing] = audited([
    {
      name: "nova",
      recorded_at: "2026-11-21T10:00:00Z",
      claims: 3,
      living: 2,
      counts: { orphan: 5, missing: 1 },
      findings: [
        { kind: "orphan", consumer: "c1", consumer_type: "INSTANCE", project_id: "web", host: "h", resources: "VCPU 2", claimed_at: "then", claimed_by: "ann" },
        { kind: "missing", consumer: "c2", expected_host: "h2", expected_resources: "VCPU 4" },
        { kind: "of a later release", consumer: "c3" },
      ],
    },
  ]);
  assert.match(orphans!.meaning, /; 4 more are in the report/);
  assert.deepEqual(orphans!.found.map(({ uuid, text }) => [uuid, text]), [
    ["c1", "INSTANCE of web, claims VCPU 2 on h, claimed at then by ann"],
  ]);
  assert.equal(missing!.found[0]!.text, "consumer, claims nothing, should claim VCPU 4 on h2");
  assert.doesNotMatch(missing!.meaning, /more/);
});

test("drift says what was declared and what is", () => {
  const drift = [
    { path: "h/inventories/VCPU", before: { total: 8, reserved: 0 }, after: { total: 4, reserved: 0 } },
    { path: "h/traits/A", before: true, after: false },
  ];
  const { found } = drifting([{ owner: "fleet", uuid: "u", name: "h", root: "r", drift }]);
  assert.equal(found[0]!.uuid, "r");
  assert.equal(
    found[0]!.text,
    "h/inventories/VCPU: declared total 8, reserved 0, is total 4, reserved 0; h/traits/A: declared present, is absent (fleet)",
  );
});
