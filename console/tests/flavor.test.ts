import assert from "node:assert/strict";
import { test } from "node:test";
import nova from "../../tests/commands/request/nova.json";
import { translate, understand } from "../src/flavor.ts";
import { strip } from "../src/question.ts";

interface Case {
  extra_specs: Record<string, string>;
  image: Record<string, string>;
  query?: string;
  refused?: string;
  left_out?: string[];
}

test("the query of a flavor and an image is Nova's", () => {
  for (const { extra_specs, image, query = "", refused, left_out: others = [] } of nova.cases as unknown as Case[]) {
    const { query: built, faults, notes } = translate(JSON.stringify({ flavor: { ...nova.flavor, extra_specs }, image }));
    assert.equal(built, query);
    assert.equal(faults.length, refused ? 1 : 0, faults.join());
    if (refused) assert.ok(faults[0]!.includes(refused), faults[0]);
    assert.deepEqual(notes, others.length ? [`Not part of the query: ${others.join(", ")}.`] : []);
  }
});

test("a flavor as the command line prints it", () => {
  const flavor = {
    vcpus: 4, ram: 8192, disk: 20, swap: 1500, "OS-FLV-EXT-DATA:ephemeral": 10,
    properties: "resources:CUSTOM_BAREMETAL='1', resources:VCPU='0', resources1:PGPU='2', trait:HW_CPU_X86_AVX2='required', " +
      "trait1:CUSTOM_OLD='forbidden', group_policy='none', trait:CUSTOM_A='maybe', resources:NO='x'",
  };
  const { query, notes } = translate(JSON.stringify(flavor));
  assert.equal(
    query,
    "group_policy=none&required=HW_CPU_X86_AVX2&required1=!CUSTOM_OLD&resources=CUSTOM_BAREMETAL:1,DISK_GB:32,MEMORY_MB:8192&resources1=PGPU:2",
  );
  assert.deepEqual(notes, ["trait:CUSTOM_A = maybe has no effect.", "resources:NO = x has no effect."]);
});

test("what is no request is said", () => {
  const said = (text: string) => understand(text, strip).faults.join(" ");
  assert.match(said("m1.large"), /“m1.large” is no query string. A flavor/);
  assert.match(said("VCPU:4"), /resources=VCPU:4 is/);
  assert.match(said('{"vcpus": 1, "ram":"lots", "disk": 1}'), /ram = "lots", which is no amount/);
  assert.match(said('{"ram":'), /JSON is not valid/);
  assert.match(said("[1]"), /no vcpus/);
  assert.match(said("required=CUSTOM_A"), /contains no resources/);
  assert.equal(said("http://host/allocation_candidates?resources=VCPU:1"), "");
  assert.equal(said(""), "");
});
