import assert from "node:assert/strict";
import { test } from "node:test";
import { parse, render, termOf, termsOf, without, withTerms } from "../src/question.ts";

const QUERY =
  "resources=VCPU:2,MEMORY_MB:512&required=HW_CPU_X86_AVX2,!CUSTOM_OLD&required=in:CUSTOM_A,CUSTOM_B" +
  "&resources1=PGPU:1&required1=HW_GPU_API_VULKAN&member_of1=in:a,b&in_tree1=c" +
  "&root_required=CUSTOM_ROOT&group_policy=isolate&same_subtree=1,2&limit=5";

test("a question is written as it was read", () => {
  assert.equal(render(parse(QUERY)), QUERY);
});

test("a question is found in an address and in a command", () => {
  const query = "resources=VCPU:2&required=!CUSTOM_OLD";
  assert.equal(render(parse(`http://host/allocation_candidates?${query}#there`)), query);
  assert.equal(render(parse(`curl -H 'a: b' 'http://host/allocation_candidates?${query}' -v`)), query);
});

test("the term of a constraint takes it out of the question", () => {
  const told: [Parameters<typeof termOf>[0], string][] = [
    [{ kind: "required", suffix: "", value: ["HW_CPU_X86_AVX2"] }, "HW_CPU_X86_AVX2"],
    [{ kind: "required", suffix: "", value: ["CUSTOM_A", "CUSTOM_B"] }, "CUSTOM_A"],
    [{ kind: "forbidden", suffix: "", value: "CUSTOM_OLD" }, "CUSTOM_OLD"],
    [{ kind: "member_of", suffix: "1", value: ["a", "b"] }, "member_of"],
    [{ kind: "in_tree", suffix: "1", value: "c" }, "in_tree"],
    [{ kind: "root_required", suffix: "", value: "CUSTOM_ROOT" }, "CUSTOM_ROOT"],
    [{ kind: "same_subtree", suffix: "", value: ["1", "2"] }, "same_subtree"],
    [{ kind: "isolate", suffix: "" }, "isolate"],
    [{ kind: "inventory", suffix: "1", resource_class: "PGPU" }, "PGPU"],
  ];
  for (const [constraint, gone] of told) {
    const left = render(without(parse(QUERY), termOf(constraint)!));
    assert.ok(!left.includes(gone), left);
    assert.ok(left.length > QUERY.length - 40, left);
  }
});

test("a term is known again in another order, and inside a list", () => {
  const left = (query: string, term: string) => render(without(parse(query), term));
  assert.equal(left("resources=VCPU:1&required=in:B,A", "required=in:A,B"), "resources=VCPU:1");
  assert.equal(left("resources=VCPU:1&member_of=in:b", "member_of=b"), "resources=VCPU:1");
  assert.equal(left("resources=VCPU:1&member_of=!in:a,b", "member_of=!a"), "resources=VCPU:1&member_of=!in:b");
  assert.equal(left("resources=VCPU:1&same_subtree=2,1", "same_subtree=1,2"), "resources=VCPU:1");
});

test("too large an amount becomes the one that is offered", () => {
  const room = { kind: "room", suffix: "", resource_class: "VCPU", value: 16 };
  const question = parse("resources=VCPU:16,DISK_GB:1");
  const amounts = [{ suffix: "", resource_class: "VCPU", amount: 12 }];
  const terms = termsOf(question, [room], amounts)!;
  assert.equal(render(terms.reduce(without, question)), "resources=VCPU:12,DISK_GB:1");
  assert.equal(termsOf(question, [room], []), null);
  assert.deepEqual(withTerms(terms, ["resources=VCPU:4"]), ["resources=VCPU:4"]);
});

test("what would leave nothing to ask for is not asked", () => {
  const inventory = { kind: "inventory", suffix: "", resource_class: "VCPU", value: "VCPU" };
  assert.equal(termsOf(parse("resources=VCPU:16"), [inventory], []), null);
  assert.deepEqual(termsOf(parse("resources=VCPU:16,DISK_GB:1"), [inventory], []), ["resources=VCPU"]);
});
