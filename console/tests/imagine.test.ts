import assert from "node:assert/strict";
import { test } from "node:test";
import { capacity, type Inventory } from "../src/fleet.ts";
import { given, imagine, sayGiven } from "../src/imagine.ts";
import { readProvider, type Constraint, type Unmet } from "../src/wire.ts";

const constraint = (kind: string, value: unknown, name?: string) =>
  ({ id: "x", kind, suffix: "", value, resource_class: name }) as unknown as Constraint;
const unmet = (needs: unknown, used = 0) => ({ id: "x", needs, used }) as unknown as Unmet;

function host(inventory: Partial<Inventory>) {
  const whole = { total: 8, reserved: 0, allocation_ratio: 1, min_unit: 1, max_unit: 8, step_size: 1, ...inventory };
  return readProvider({ uuid: "u", name: "u", inventories: { VCPU: whole } });
}

/** Numbers that look random and are the same each time. */
function* numbers() {
  for (let state = 17; ; state = (state * 48_271) % 2_147_483_647) yield state;
}

test("what is imagined has room, whatever is reserved and whatever the ratio", () => {
  const random = numbers();
  const next = (most: number) => random.next().value! % most;
  for (let round = 0; round < 20_000; round += 1) {
    const inventory = { total: 1 + next(64), reserved: next(16), allocation_ratio: (1 + next(160)) / 10 };
    const [used, needs] = [next(300), 1 + next(300)];
    const provider = host(inventory);
    const help = imagine(constraint("room", needs, "VCPU"), unmet(needs, used), provider);
    const has = provider.inventories["VCPU"]!;
    if (!help) {
      assert.ok(capacity(has) >= used + needs, JSON.stringify({ inventory, used, needs }));
      continue;
    }
    const total = given([`u:${help.term}`])["u"]!.inventories!["VCPU"]!.total!;
    const room = (total: number) => capacity({ ...has, total });
    assert.ok(room(total) >= used + needs, JSON.stringify({ inventory, used, needs, total }));
    assert.ok(room(total - 2) < used + needs, JSON.stringify({ inventory, used, needs, total }));
  }
});

test("only what would help is imagined", () => {
  assert.deepEqual(imagine(constraint("unit", 9, "VCPU"), unmet(9), host({}))?.term, "VCPU<=9");
  assert.equal(imagine(constraint("unit", 7, "VCPU"), unmet(7), host({ step_size: 2 })), null);
  assert.equal(imagine(constraint("forbidden", "CUSTOM_A"), unmet("!CUSTOM_A"), host({})), null);
  assert.equal(imagine(constraint("required", ["CUSTOM_A", "CUSTOM_B"]), unmet([]), host({}))?.term, "CUSTOM_A");
});

test("an address says what is imagined, and so does the question", () => {
  const pairs = ["u:CUSTOM_A", "u:VCPU=16", "u:VCPU<=12", "v:in:aggregate"];
  assert.deepEqual(given(pairs), {
    u: { traits: { add: ["CUSTOM_A"] }, inventories: { VCPU: { total: 16, max_unit: 12 } } },
    v: { aggregates: { add: ["aggregate"] } },
  });
  const said = pairs.map((pair) => sayGiven(pair, (uuid) => `host ${uuid}`));
  assert.deepEqual(said, [
    "host u had CUSTOM_A",
    "host u had 16 VCPU in all",
    "host u gave up to 12 VCPU to one consumer",
    "host v were in aggregat",
  ]);
});
