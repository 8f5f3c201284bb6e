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

test("what a link asks for is never code for a shell", () => {
  for (const evil of ["$(date)", ";date", "a b", "`date`", "'$(date)'"]) {
    const text = encodeURIComponent(evil).replaceAll("'", "%27");
    const word = quote(evil);
    const asked = {
      [`resources=VCPU:${text}`]: `--resource ${quote(`VCPU=${evil}`)}`,
      [`resources=${text}:1`]: `--resource ${quote(`${evil}=1`)}`,
      [`required=${text}`]: `--required ${word}`,
      [`required=!${text}`]: `--forbidden ${word}`,
      [`required=in:${text}`]: `--required ${word}`,
      [`member_of=${text}`]: `--member-of ${word}`,
      [`member_of=in:${text}`]: `--member-of ${word}`,
      [`group_policy=${text}`]: `--group-policy ${word}`,
      [`limit=${text}`]: `--limit ${word}`,
    };
    assert.match(word, /^'/);
    for (const [query, said] of Object.entries(asked)) {
      assert.ok(openstack(parse(query))!.endsWith(`allocation candidate list ${said}`), query);
    }
  }
});

test("what belongs to no group is asked before the groups", () => {
  const said = openstack(parse("resources2=PGPU:1&resources1=VCPU:1&resources=VCPU:2"))!;
  assert.ok(said.endsWith(" --resource VCPU=2 --group 2 --resource PGPU=1 --group 1 --resource VCPU=1"), said);
});

test("what the command line client cannot ask is no command for it", () => {
  for (const more of ["in_tree=x", "member_of=!x", "root_required=HW_A", "same_subtree=1,2", "resources_net=PGPU:1", "other=1"]) {
    assert.equal(openstack(parse(`resources=VCPU:2&${more}`)), null, more);
  }
});
