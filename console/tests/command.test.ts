import assert from "node:assert/strict";
import { test } from "node:test";
import { curl, explain, openstack, quote } from "../src/command.ts";
import { parse } from "../src/question.ts";

const ROOT = "http://host/placement/";

test("a question is one word of a command, whatever is in it", () => {
  const query = "resources=VCPU:2&required=CUSTOM_A';rm -rf ~;'";
  const word = `'resources=VCPU:2&required=CUSTOM_A'\\'';rm -rf ~;'\\'''`;
  assert.equal(quote(query), word);
  assert.equal(quote("resources=VCPU:2"), "resources=VCPU:2");
  const question = parse("resources=VCPU:2&required=HW_A");
  assert.equal(explain(question), "placement-explain 'resources=VCPU:2&required=HW_A'");
  assert.ok(curl(ROOT, question).endsWith(`'${ROOT}allocation_candidates?resources=VCPU:2&required=HW_A'`));
});

test("the command line client is asked for all groups", () => {
  const query =
    "resources=VCPU:2,MEMORY_MB:512&required=HW_A,!CUSTOM_OLD&required=in:CUSTOM_A,CUSTOM_B" +
    "&resources1=PGPU:1&member_of1=in:a,b&group_policy=isolate&limit=5";
  assert.equal(
    openstack(parse(query)),
    "openstack --os-placement-api-version 1.39 allocation candidate list" +
      " --resource VCPU=2 --resource MEMORY_MB=512 --required HW_A --forbidden CUSTOM_OLD --required CUSTOM_A,CUSTOM_B" +
      " --group 1 --resource PGPU=1 --member-of a,b --group-policy isolate --limit 5",
  );
});

test("what the command line client cannot ask is no command for it", () => {
  for (const more of ["in_tree=x", "member_of=!x", "root_required=HW_A", "same_subtree=1,2", "resources_net=PGPU:1", "other=1"]) {
    assert.equal(openstack(parse(`resources=VCPU:2&${more}`)), null, more);
  }
});
