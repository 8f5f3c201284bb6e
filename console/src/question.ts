// A request for resources: parsed from a query string or a flavor, changed, and written.

export interface Group {
  suffix: string;
  resources: [string, string][];
  /** As in the query: `A`, `!B`, `in:C,D`. */
  required: string[];
  memberOf: string[];
  inTree: string;
}

export interface Question {
  groups: Group[];
  rootRequired: string[];
  policy: string;
  sameSubtree: string[];
  /** The parameters that have no place in the form, as given. */
  rest: [string, string][];
}

const KEYS = /^(resources|required|member_of|in_tree)([A-Za-z0-9_-]{0,64})$/;

export const EMPTY: Question = { groups: [], rootRequired: [], policy: "", sameSubtree: [], rest: [] };

export function group(suffix: string): Group {
  return { suffix, resources: [], required: [], memberOf: [], inTree: "" };
}

export function parse(text: string): Question {
  const question: Question = { ...EMPTY, groups: [], rootRequired: [], sameSubtree: [], rest: [] };
  const groups = new Map<string, Group>();
  for (const [key, value] of new URLSearchParams(strip(text))) {
    const found = KEYS.exec(key);
    if (key === "root_required") question.rootRequired.push(...list(value));
    else if (key === "group_policy") question.policy = value;
    else if (key === "same_subtree") question.sameSubtree.push(value);
    else if (!found) question.rest.push([key, value]);
    else {
      const suffix = found[2]!;
      if (!groups.has(suffix)) groups.set(suffix, group(suffix));
      fill(groups.get(suffix)!, found[1]!, value);
    }
  }
  question.groups = [...groups.values()];
  return question;
}

/** The query may be part of a whole URL, or of a `curl` command. */
export function strip(text: string): string {
  const query = text.trim().replace(/^[^?]*\?/, "");
  return query.split(/["'\s#]/)[0]!;
}

function fill(group: Group, key: string, value: string): void {
  if (key === "resources") {
    for (const each of list(value)) {
      const [name = "", amount = ""] = each.split(":");
      group.resources.push([name, amount]);
    }
  } else if (key === "required") {
    group.required.push(...(value.startsWith("in:") ? [value] : list(value)));
  } else if (key === "member_of") {
    group.memberOf.push(value);
  } else {
    group.inTree = value;
  }
}

function list(value: string): string[] {
  return value.split(",").filter(Boolean);
}

export function render(question: Question): string {
  const said: [string, string][] = [];
  const say = (key: string, value: string) => value && said.push([key, value]);
  for (const { suffix, resources, required, memberOf, inTree } of question.groups) {
    const amounts = resources.filter(([name]) => name);
    say(`resources${suffix}`, amounts.map(([name, amount]) => `${name}:${amount}`).join());
    say(`required${suffix}`, required.filter((term) => !term.startsWith("in:")).join());
    required.filter((term) => term.startsWith("in:")).forEach((term) => say(`required${suffix}`, term));
    memberOf.forEach((term) => say(`member_of${suffix}`, term));
    say(`in_tree${suffix}`, inTree);
  }
  say("root_required", question.rootRequired.join());
  say("group_policy", question.policy);
  question.sameSubtree.forEach((suffixes) => say("same_subtree", suffixes));
  question.rest.forEach(([key, value]) => say(key, value));
  return said.map(([key, value]) => `${encodeURIComponent(key)}=${readable(value)}`).join("&");
}

function readable(value: string): string {
  return encodeURIComponent(value).replace(/%(3A|2C|21)/g, decodeURIComponent);
}

export function isEmpty({ groups }: Question): boolean {
  return groups.every(({ resources }) => resources.every(([name]) => !name));
}

export function copy(question: Question): Question {
  return structuredClone(question);
}

// A what-if is a list of terms that are left out, `required1=CUSTOM_A`, or asked for
// with another amount, `resources1=VCPU:12`.

export interface Term {
  key: string;
  value: string;
}

export function parseTerm(text: string): Term {
  const end = text.indexOf("=");
  return { key: text.slice(0, end), value: text.slice(end + 1) };
}

/** Return the question without a term, or with another amount. */
export function without(question: Question, text: string): Question {
  const { key, value } = parseTerm(text);
  const next = copy(question);
  const drop = (terms: string[]) => terms.flatMap((term) => lift(term, value));
  if (key === "root_required") next.rootRequired = drop(next.rootRequired);
  else if (key === "group_policy") next.policy = next.policy && "none";
  else if (key === "same_subtree") next.sameSubtree = drop(next.sameSubtree);
  else {
    const [, name, suffix] = KEYS.exec(key) ?? [];
    for (const group of next.groups.filter((each) => each.suffix === suffix)) {
      if (name === "resources") group.resources = changeAmount(group.resources, value);
      else if (name === "required") group.required = drop(group.required);
      else if (name === "member_of") group.memberOf = drop(group.memberOf);
      else group.inTree = "";
    }
  }
  return next;
}

/** What is left of a term without a value; terms that accept one of several go as a whole. */
function lift(term: string, value: string): string[] {
  if (normal(term) === normal(value)) return [];
  if (!term.startsWith("!in:") || !value.startsWith("!")) return [term];
  const left = term.slice(4).split(",").filter((each) => each !== value.slice(1));
  return left.length ? [`!in:${left.join()}`] : [];
}

function normal(term: string): string {
  const sign = term.startsWith("!") ? "!" : "";
  return sign + term.replace(/^!?(in:)?/, "").split(",").sort().join();
}

function changeAmount(resources: [string, string][], value: string): [string, string][] {
  const [name, amount] = value.split(":");
  if (!amount) return resources.filter(([each]) => each !== name);
  return resources.map(([each, before]) => [each, each === name ? amount : before]);
}

interface Told {
  kind: string;
  suffix?: string | undefined;
  resource_class?: string | undefined;
  value?: unknown;
}

interface Amount {
  suffix: string;
  resource_class: string;
  amount: number;
}

/**
 * Return the terms that ask what a change says; null if no request can ask that.
 *
 * @param amounts those to ask for, of the classes whose constraints would be lifted
 */
export function termsOf(question: Question, dropped: readonly Told[], amounts: readonly Amount[]): string[] | null {
  const terms = new Set<string>();
  for (const { suffix, resource_class: name, amount } of amounts) terms.add(`resources${suffix}=${name}:${amount}`);
  for (const each of dropped) {
    const isChanged = amounts.some(
      ({ suffix, resource_class: name }) => suffix === (each.suffix ?? "") && name === each.resource_class,
    );
    if (isChanged) continue;
    const term = termOf(each);
    if (term === null) return null;
    terms.add(term);
  }
  const found = [...terms];
  return isComplete(found.reduce(without, question), question) ? found : null;
}

/** Whether each group still asks for resources if it did. */
function isComplete(now: Question, before: Question): boolean {
  return before.groups.every(({ suffix, resources }) => {
    const group = now.groups.find((each) => each.suffix === suffix);
    return !resources.length || Boolean(group?.resources.length);
  });
}

/** Add terms to others; an amount replaces an earlier one of the same class. */
export function withTerms(terms: readonly string[], more: readonly string[]): string[] {
  const about = (term: string) => term.replace(/:\d+$/, "");
  const replaced = new Set(more.map(about));
  return [...terms.filter((term) => !replaced.has(about(term))), ...more];
}

/** Return the term that is left out to lift a constraint; null if there is none. */
export function termOf({ kind, suffix = "", resource_class: name, value }: Told): string | null {
  const values = Array.isArray(value) ? value.map(String) : [String(value ?? "")];
  const [only = ""] = values;
  switch (kind) {
    case "root_required":
      return `root_required=${only}`;
    case "root_forbidden":
      return `root_required=!${only}`;
    case "inventory":
      return `resources${suffix}=${name ?? only}`;
    case "in_tree":
      return `in_tree${suffix}=${only}`;
    case "member_of":
      return `member_of${suffix}=${values.length > 1 ? "in:" : ""}${values.join()}`;
    case "not_member_of":
      return `member_of${suffix}=!${only}`;
    case "required":
      return `required${suffix}=${values.length > 1 ? "in:" : ""}${values.join()}`;
    case "forbidden":
      return `required${suffix}=!${only}`;
    case "isolate":
      return "group_policy=isolate";
    case "same_subtree":
      return `same_subtree=${values.join()}`;
    default:
      return null;
  }
}
