import assert from "node:assert/strict";
import { test } from "node:test";
import { listMovers, promise, without, type Promised } from "../src/drain.ts";
import { SHARING } from "../src/fleet.ts";
import { readProvider } from "../src/wire.ts";

const inventory = (total: number, ratio = 1) => ({ total, reserved: 0, allocation_ratio: ratio, min_unit: 1, max_unit: total, step_size: 1 });
const host = readProvider({
  uuid: "h", name: "h", inventories: { MEMORY_MB: inventory(1000), VCPU: inventory(4, 4) },
  allocations: { small: { resources: { MEMORY_MB: 100, VCPU: 2 } }, large: { resources: { MEMORY_MB: 600 } } },
});
const node = (name: string) =>
  readProvider({
    uuid: name, name, parent_provider_uuid: "h", root_provider_uuid: "h", inventories: { PCPU: inventory(8) },
    allocations: { large: { resources: { PCPU: 2 } } },
  });
const pool = readProvider({
  uuid: "p", name: "p", traits: [SHARING], inventories: { DISK_GB: inventory(100) },
  allocations: { large: { resources: { DISK_GB: 10 } }, elsewhere: { resources: { DISK_GB: 90 } } },
});

test("the largest consumer moves first, and asks for what it has", () => {
  const movers = listMovers([host, node("n1"), node("n2")], [pool]);
  assert.deepEqual(
    movers.map(({ consumer, query }) => [consumer, query]),
    [
      [
        "large",
        "resources=MEMORY_MB:600,DISK_GB:10&resources1=PCPU:2&resources2=PCPU:2&group_policy=none&root_required=!COMPUTE_STATUS_DISABLED",
      ],
      ["small", "resources=MEMORY_MB:100,VCPU:2&root_required=!COMPUTE_STATUS_DISABLED"],
    ],
  );
  assert.deepEqual([...movers[0]!.amounts], [["MEMORY_MB", 600], ["PCPU", 4], ["DISK_GB", 10]]);
});

test("what is promised is taken off", () => {
  const promised: Promised = new Map();
  promise(promised, { h: { resources: { VCPU: 3 } } });
  promise(promised, { h: { resources: { VCPU: 2, MEMORY_MB: 1000 } } });
  assert.deepEqual(without(promised, new Map([["h", host]])), {
    h: { inventories: { VCPU: { total: 11, reserved: 0, allocation_ratio: 1 }, MEMORY_MB: { total: 1, reserved: 1, allocation_ratio: 1 } } },
  });
});
