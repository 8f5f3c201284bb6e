// The form of a question. It follows the query string, and the query string follows it.

import { useState } from "preact/hooks";
import { idOf } from "../name.ts";
import { copy, group, render, type Group, type Question } from "../question.ts";
import { amount, count } from "../unit.ts";
import { Field, Name } from "./part.tsx";

interface Asking {
  question: Question;
  ask: (question: Question) => void;
}

export function QuestionForm({ question: said, ask: tell }: Asking) {
  // Empty fields exist only in the form: a query has no place for them.
  const [draft, setDraft] = useState(said);
  const question = render(draft) === render(said) ? draft : said;
  const ask = (next: Question) => {
    setDraft(next);
    tell(next);
  };
  const groups = question.groups.length ? question.groups : [group("")];
  const edit = (number: number, changed: Group | null) => {
    const next = copy({ ...question, groups });
    if (changed) next.groups[number] = changed;
    else next.groups.splice(number, 1);
    ask(next);
  };
  const addGroup = () => ask({ ...copy(question), groups: [...groups, group(free(groups))] });
  return (
    <form class="question" onSubmit={(event) => event.preventDefault()}>
      {groups.map((each, number) => (
        <GroupFields key={number} group={each} alone={groups.length === 1} edit={(changed) => edit(number, changed)} />
      ))}
      <p class="row">
        <button type="button" onClick={addGroup}>
          Add a group
        </button>
        {groups.length > 1 && <Together question={question} ask={ask} />}
      </p>
      <Root question={question} ask={ask} />
    </form>
  );
}

function free(groups: readonly Group[]): string {
  let number = 1;
  while (groups.some(({ suffix }) => suffix === String(number))) number += 1;
  return String(number);
}

interface GroupOf {
  group: Group;
  alone: boolean;
  edit: (changed: Group | null) => void;
}

function GroupFields({ group, alone, edit }: GroupOf) {
  const rows: [string, string][] = group.resources.length ? group.resources : [["", "1"]];
  const setRow = (number: number, row: [string, string]) =>
    edit({ ...group, resources: rows.map((each, place) => (place === number ? row : each)) });
  const dropRow = (number: number) => edit({ ...group, resources: rows.filter((_, place) => place !== number) });
  const name = group.suffix ? `Group ${group.suffix}` : alone ? "Request" : "Anywhere in the tree";
  return (
    <fieldset>
      <legend>
        {name}
        {!alone && (
          <button type="button" class="small" onClick={() => edit(null)} aria-label={`Remove ${name}`}>
            Remove
          </button>
        )}
      </legend>
      {rows.map(([resourceClass, amount], number) => (
        <div class="row" key={number}>
          <Field label="Class">
            <input
              list="known-classes"
              value={resourceClass}
              onChange={(event) => setRow(number, [event.currentTarget.value.trim().toUpperCase(), amount])}
            />
          </Field>
          <Field label={`Amount${amountOf(resourceClass, amount)}`}>
            <input
              type="number"
              min={1}
              value={amount}
              onInput={(event) => setRow(number, [resourceClass, event.currentTarget.value])}
            />
          </Field>
          {rows.length > 1 && (
            <button type="button" class="small" onClick={() => dropRow(number)} aria-label={`Remove ${resourceClass}`}>
              ×
            </button>
          )}
        </div>
      ))}
      <p>
        <button type="button" class="small" onClick={() => edit({ ...group, resources: [...rows, ["", "1"]] })}>
          Add a class
        </button>
      </p>
      <Terms
        label="Traits"
        what="Trait"
        list="known-traits"
        terms={group.required}
        ways={[
          ["", "has"],
          ["in:", "has one of"],
          ["!", "has not"],
        ]}
        edit={(required) => edit({ ...group, required })}
      />
      <Terms
        label="Aggregates"
        what="Aggregate"
        list="known-aggregates"
        meant={(text) => idOf("aggregates", text)}
        terms={group.memberOf}
        ways={[
          ["", "is in"],
          ["in:", "is in one of"],
          ["!", "is not in"],
        ]}
        edit={(memberOf) => edit({ ...group, memberOf })}
      />
      <Field label="In the tree of (UUID)">
        <input
          value={group.inTree}
          size={36}
          onChange={(event) => edit({ ...group, inTree: event.currentTarget.value.trim() })}
        />
      </Field>
    </fieldset>
  );
}

/** What an amount is in the units of people; empty if these are the same. */
function amountOf(resourceClass: string, text: string): string {
  const said = amount(resourceClass, Number(text));
  return said === count(Number(text)) ? "" : ` = ${said}`;
}

interface TermsOf {
  label: string;
  what: string;
  list: string;
  terms: string[];
  ways: [string, string][];
  /** What is meant by a name of something that has another one in the query. */
  meant?: (text: string) => string;
  edit: (terms: string[]) => void;
}

function Terms({ label, what, list, terms, ways, edit, meant = (text) => text }: TermsOf) {
  const [way, setWay] = useState("");
  const [text, setText] = useState("");
  const put = (event: Event) => {
    event.preventDefault();
    // Names of aggregates may have blanks.
    const words = meant(text).split(/[\s,]+/).filter(Boolean);
    const names = words.map(meant).join();
    if (!names) return;
    const isList = names.includes(",");
    edit([...terms, way === "!" && isList ? `!in:${names}` : way === "in:" && !isList ? names : way + names]);
    setText("");
  };
  const press = (event: KeyboardEvent) => event.key === "Enter" && put(event);
  return (
    <div class="terms" role="group" aria-label={label}>
      {terms.length > 0 && (
        <ul class="tokens">
          {terms.map((term) => (
            <li key={term}>
              <Chip text={say(term, ways)} drop={() => edit(terms.filter((each) => each !== term))} />
            </li>
          ))}
        </ul>
      )}
      <div class="row">
        <Field label={label}>
          <select value={way} onChange={(event) => setWay(event.currentTarget.value)}>
            {ways.map(([each, told]) => (
              <option key={each} value={each}>
                {told}
              </option>
            ))}
          </select>
        </Field>
        <Field label={what}>
          <input list={list} value={text} onInput={(event) => setText(event.currentTarget.value)} onKeyDown={press} />
        </Field>
        <button type="button" class="small" onClick={put} aria-label={`Add ${what.toLowerCase()}`}>
          Add
        </button>
      </div>
    </div>
  );
}

function say(term: string, ways: readonly [string, string][]): string {
  const start = term.startsWith("!") ? "!" : term.startsWith("in:") ? "in:" : "";
  const names = term.replace(/^!?(in:)?/, "").replaceAll(",", ", ");
  return `${ways.find(([each]) => each === start)![1]} ${names}`;
}

/** Something that can be removed again. */
export function Chip({ text, drop }: { text: string; drop: () => void }) {
  return (
    <span class="token">
      <Name text={text} />
      <button type="button" class="off" onClick={drop} aria-label={`Remove: ${text}`}>
        ×
      </button>
    </span>
  );
}

function Together({ question, ask }: Asking) {
  const isolate = question.policy === "isolate";
  const suffixes = question.groups.map(({ suffix }) => suffix).filter(Boolean);
  const all = suffixes.join();
  const together = question.sameSubtree.length > 0;
  return (
    <>
      <label class="check">
        <input
          type="checkbox"
          checked={isolate}
          onChange={() => ask({ ...copy(question), policy: isolate ? "none" : "isolate" })}
        />
        each group from a provider of its own
      </label>
      {suffixes.length > 0 && (
        <label class="check">
          <input
            type="checkbox"
            checked={together}
            onChange={() => ask({ ...copy(question), sameSubtree: together ? [] : [all] })}
          />
          groups in the same subtree
        </label>
      )}
    </>
  );
}

function Root({ question, ask }: Asking) {
  return (
    <details open={question.rootRequired.length > 0}>
      <summary>The host itself</summary>
      <Terms
        label="Traits of the root"
        what="Trait of the root"
        list="known-traits"
        terms={question.rootRequired}
        ways={[
          ["", "has"],
          ["!", "has not"],
        ]}
        edit={(rootRequired) => ask({ ...copy(question), rootRequired })}
      />
    </details>
  );
}
