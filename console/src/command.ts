// The question as commands that others can run.

import type { Question } from "./question.ts";
import { render } from "./question.ts";

/** Quote for a shell. */
export function quote(text: string): string {
  return /^[\w:=.,/@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

export function curl(root: string, question: Question): string {
  const url = `${root}allocation_candidates?${render(question)}`;
  return `curl -H "X-Auth-Token: $OS_TOKEN" -H 'OpenStack-API-Version: placement latest' ${quote(url)}`;
}

export function explain(question: Question): string {
  return `placement-explain ${quote(render(question))}`;
}

/** None for questions that the options of the command line client cannot express. */
export function openstack(question: Question): string | null {
  const { groups, rootRequired, sameSubtree, policy, rest } = question;
  const isNumbered = groups.every(({ suffix }) => /^\d*$/.test(suffix));
  const isPlain = groups.every(({ inTree, memberOf }) => !inTree && memberOf.every(isMember));
  if (!isNumbered || !isPlain || rootRequired.length || sameSubtree.length) return null;
  const limit = rest.find(([key]) => key === "limit");
  if (rest.some(([key]) => key !== "limit")) return null;
  const said = ["openstack --os-placement-api-version 1.39 allocation candidate list"];
  const say = (option: string, value: string) => said.push(`--${option} ${quote(value)}`);
  // What follows a group belongs to it: what has none comes first.
  const ordered = [...groups].sort((a, b) => Math.sign(a.suffix.length) - Math.sign(b.suffix.length));
  for (const { suffix, resources, required, memberOf } of ordered) {
    if (suffix) say("group", suffix);
    resources.filter(([name]) => name).forEach(([name, amount]) => say("resource", `${name}=${amount}`));
    for (const term of required) {
      if (term.startsWith("!")) say("forbidden", term.slice(1));
      else say("required", term.replace(/^in:/, ""));
    }
    memberOf.forEach((term) => say("member-of", term.replace(/^in:/, "")));
  }
  if (policy) say("group-policy", policy);
  if (limit) say("limit", limit[1]);
  return said.join(" ");
}

function isMember(term: string): boolean {
  return !term.includes("!");
}
