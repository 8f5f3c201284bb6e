// Ask: which hosts serve a request, how many times it fits, and if none serves, why.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Failure, get, wrap } from "../api.ts";
import { curl, explain, openstack } from "../command.ts";
import { understand, type Translation } from "../flavor.ts";
import { given, helpOf, isEnough, sayGiven } from "../imagine.ts";
import { isEmpty, parse, parseTerm, render, strip, termsOf, without, withTerms, type Question } from "../question.ts";
import { ROOT } from "../root.ts";
import { address, change, recall, type Place as Here } from "../route.ts";
import { useSource } from "../source.ts";
import { store, useFleet } from "../store.ts";
import { amount, count, inUnits, plural, sayAmounts, short } from "../unit.ts";
import type { Asked as Host, Candidates, Capacity, Change, Constraint, Explanation, Near, Unmet } from "../wire.ts";
import { Copy, Failed, Id, Known, Length, Name } from "./part.tsx";
import { Place } from "./place.tsx";
import { Chip, QuestionForm } from "./question.tsx";
import { Table, type Column } from "./table.tsx";

/** The question, and the changes to the cloud under which it is asked. */
interface Asked {
  question: Question;
  /** The question with its what-ifs. */
  now: Question;
  off: string[];
  ignore: string[];
  /** What providers are imagined to have: a trait, `in:` an aggregate, `CLASS=` a total or `CLASS<=` a max_unit. */
  give: string[];
  /** Hosts that are imagined away. */
  leave: string[];
  /** A host to explain in full; empty without one. */
  host: string;
}

function read({ query }: Here): Asked {
  const question = parse(query.get("q") ?? "");
  const off = query.getAll("off");
  return { question, now: off.reduce(without, question), off, ignore: query.getAll("ignore"), give: query.getAll("give"), leave: query.getAll("leave"), host: query.get("host") ?? "" };
}

export function AskView({ place }: { place: Here }) {
  const asked = useMemo(() => read(place), [place]);
  const text = place.query.get("q") ?? "";
  useEffect(() => recall(text), [text]);
  const [times, setTimes] = useState(0);
  const [seconds, setSeconds] = useState("");
  const found = useAnswers(asked, times, seconds);
  const answer = useRef<HTMLElement>(null);
  return (
    <>
      <div class="ask">
        <section aria-label="The question">
          <Paste text={text} />
          {found.answers.explanation && (
            <button type="button" class="plain brief" onClick={() => answer.current?.scrollIntoView()}>
              {sayServing(found.answers.explanation)} ↓
            </button>
          )}
          <QuestionForm question={asked.question} ask={(question) => change({ q: render(question), off: null }, "replace")} />
          <KnownNames />
        </section>
        <section aria-label="The answer" aria-live="polite" ref={answer}>
          <Chips asked={asked} />
          {isEmpty(asked.question) ? (
            <Nothing />
          ) : (
            <Answer asked={asked} found={found} again={() => setTimes(times + 1)} longer={seconds ? null : () => setSeconds(LONGER)} />
          )}
        </section>
      </div>
    </>
  );
}

function Nothing() {
  return (
    <div class="state">
      <p>Choose a resource class and an amount, or paste a query string or a flavor.</p>
      <p>
        <a href={address("ask", "", { q: "resources=VCPU:2,MEMORY_MB:4096" })}>
          For example: two processors and 4 GiB of memory
        </a>
      </p>
    </div>
  );
}

function Paste({ text }: { text: string }) {
  const [draft, setDraft] = useState(text);
  const [{ faults, notes }, setSaid] = useState<Pick<Translation, "faults" | "notes">>(SILENT);
  // Before the page is drawn, or the field shows the question before this one for a frame.
  useLayoutEffect(() => setDraft(text), [text]);
  const take = (typed: string) => {
    if (typed === text && !faults.length) return;
    const { query, ...said } = understand(typed, strip);
    setDraft(typed);
    setSaid(said);
    if (said.faults.length) return;
    const next = render(parse(query));
    setDraft(next);
    change({ q: next, off: null }, "replace");
  };
  const press = (event: KeyboardEvent & { currentTarget: HTMLTextAreaElement }) => {
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    take(event.currentTarget.value);
  };
  return (
    <form
      class="paste"
      onSubmit={(event) => {
        event.preventDefault();
        take(draft);
      }}
    >
      <label class="field paste">
        <span>Query string, or the JSON of a flavor</span>
        <textarea
          rows={3}
          spellcheck={false}
          value={draft}
          onInput={(event) => setDraft(event.currentTarget.value)}
          onChange={(event) => take(event.currentTarget.value)}
          onKeyDown={press}
          onPaste={(event) => {
            const { currentTarget } = event;
            setTimeout(() => take(currentTarget.value));
          }}
          aria-invalid={faults.length > 0}
          aria-describedby="paste-said"
        />
      </label>
      <div id="paste-said" role="alert">
        {faults.map((fault) => (
          <p key={fault} class="fault">
            <Name text={fault} />
          </p>
        ))}
        {notes.map((note) => (
          <p key={note} class="dim">
            <Name text={note} />
          </p>
        ))}
      </div>
      <button type="submit">Ask</button> <span class="dim">or press Enter</span>
    </form>
  );
}

const SILENT = { faults: [], notes: [] };

/** Names that the fields of the form complete. */
function KnownNames() {
  const [names, setNames] = useState<{ traits: string[]; classes: string[] }>({ traits: [], classes: [] });
  const { fleet } = useFleet();
  useEffect(() => {
    const control = new AbortController();
    const { signal } = control;
    Promise.all([
      get<{ traits: string[] }>("traits", { signal }),
      get<{ resource_classes: { name: string }[] }>("resource_classes", { signal }),
    ]).then(
      ([{ traits }, { resource_classes: classes }]) => setNames({ traits, classes: classes.map(({ name }) => name) }),
      // Without them, names can still be typed.
      () => {},
    );
    return () => control.abort();
  }, []);
  const aggregates = useMemo(
    () => [...new Set(fleet?.hosts.flatMap(({ root }) => root.aggregates) ?? [])],
    [fleet],
  );
  return (
    <>
      <Names id="known-classes" names={names.classes} />
      <Names id="known-traits" names={names.traits} />
      <Known id="known-aggregates" kind="aggregates" ids={aggregates} />
    </>
  );
}

function Names({ id, names }: { id: string; names: readonly string[] }) {
  return (
    <datalist id={id}>
      {names.map((name) => (
        <option key={name} value={name} />
      ))}
    </datalist>
  );
}

function Chips({ asked }: { asked: Asked }) {
  const { off, ignore, give, leave } = asked;
  const { fleet } = useFleet();
  const name = (uuid: string) => fleet?.providers.get(uuid)?.name ?? short(uuid);
  const drop = (name: string, values: string[], value: string) => () =>
    change({ [name]: values.filter((each) => each !== value) });
  if (!off.length && isReal(asked)) return null;
  return (
    <div class="what-if">
      <span>What if</span>
      <ul class="tokens">
        {off.map((term) => (
          <li key={term}>
            <Chip text={sayTerm(term)} drop={drop("off", off, term)} />
          </li>
        ))}
        {ignore.map((uuid) => (
          <li key={uuid}>
            <Chip text={`consumer ${short(uuid)} were gone`} drop={drop("ignore", ignore, uuid)} />
          </li>
        ))}
        {give.map((pair) => (
          <li key={pair}>
            <Chip text={sayGiven(pair, name)} drop={drop("give", give, pair)} />
          </li>
        ))}
        {leave.map((uuid) => (
          <li key={uuid}>
            <Chip text={`${name(uuid)} were not there`} drop={drop("leave", leave, uuid)} />
          </li>
        ))}
      </ul>
    </div>
  );
}

function sayTerm(term: string): string {
  const { key, value } = parseTerm(term);
  const [name = "", number] = value.split(":");
  if (!key.startsWith("resources")) return `without ${key}=${value}`;
  return number ? `${amount(name, Number(number))} ${name}` : `without ${name}`;
}

/** Whether it is asked of the cloud as it is. */
function isReal({ ignore, give, leave }: Asked): boolean {
  return !ignore.length && !give.length && !leave.length;
}

interface Answers {
  explanation?: Explanation;
  capacity?: Capacity;
  candidates?: Candidates;
}

const DELAY = 250;
// The longest that the service counts.
const LONGER = "&seconds=30";

interface Found {
  /** What was asked, and in which world. */
  key: string;
  answers: Answers;
  failure: Failure | null;
  busy: boolean;
}

/**
 * Ask the question in its three ways; each answer is shown as it arrives.
 *
 * It is asked again whenever `times` or `seconds` change, and when a person has everything read again.
 */
function useAnswers(asked: Asked, times: number, seconds: string): Found {
  const { now, ignore, give, leave, host } = asked;
  const { wishes } = useSource(store);
  const query = render(now);
  const key = JSON.stringify([query, ignore, give, leave, host]);
  const none: Found = { key, answers: {}, failure: null, busy: true };
  const [found, setFound] = useState(none);
  useEffect(() => {
    if (isEmpty(asked.question)) return;
    const control = new AbortController();
    const { signal } = control;
    const put = (more: Partial<Found>) =>
      signal.aborted || setFound((before) => ({ ...(before.key === key ? before : none), ...more }));
    const before = found.key === key ? found.answers : {};
    const answers: Answers = {};
    put({ failure: null, busy: true });
    const ask = async <T,>(kind: keyof Answers, path: string): Promise<void> => {
      const asks = path.slice(path.indexOf("?") + 1);
      const body = { query: asks, ask: kind, ignore_consumers: ignore, without_hosts: leave, providers: given(give) };
      const answer = isReal(asked)
        ? await get<T>(path, { signal })
        : await get<T>("ledger/v1/what-if", { method: "POST", body, signal });
      Object.assign(answers, { [kind]: answer });
      put({ answers: { ...before, ...answers } });
    };
    const all = async () => {
      try {
        // The reason is what people wait for; the count may take longer.
        await ask("explanation", `ledger/v1/explanation?${query}&holders=true${about(host)}`);
        await ask("candidates", `allocation_candidates?${limited(query)}`);
        await ask("capacity", `ledger/v1/capacity?${query}${seconds}`);
        put({ busy: false });
      } catch (error) {
        put({ answers: { ...answers }, failure: wrap(error, "ledger/v1/explanation"), busy: false });
      }
    };
    const timer = setTimeout(() => void all(), DELAY);
    return () => {
      clearTimeout(timer);
      control.abort();
    };
  }, [key, times, seconds, wishes]);
  return found.key === key ? found : none;
}

function about(host: string): string {
  return host && `&host=${encodeURIComponent(host)}`;
}

function limited(query: string): string {
  return new URLSearchParams(query).has("limit") ? query : `${query}&limit=10`;
}

interface AnswerOf {
  asked: Asked;
  found: Found;
  again: () => void;
  /** Counts for longer; null if it is already as long as it may be. */
  longer: (() => void) | null;
}

function Answer({ asked, found: { answers, failure, busy }, again, longer }: AnswerOf) {
  const { explanation, capacity, candidates } = answers;
  return (
    <div class="answer" aria-busy={busy}>
      {failure && <Failed failure={failure} retry={again} />}
      {explanation && <Verdict asked={asked} capacity={capacity} explanation={explanation} longer={longer} />}
      {!explanation && !failure && <p class="state">Asking…</p>}
      {explanation?.host?.map((host) => (
        <Judged key={host.uuid} host={host} explanation={explanation} />
      ))}
      {explanation?.serves === 0 && explanation.constraints.length > 0 && <Funnel explanation={explanation} />}
      {explanation?.serves === 0 && <Remedies asked={asked} explanation={explanation} />}
      {candidates && candidates.allocation_requests.length > 0 && <First candidates={candidates} asked={asked} />}
      {explanation && explanation.serves > 0 && isReal(asked) && <Place query={render(asked.now)} />}
      {explanation && explanation.serves > 0 && explanation.constraints.length > 0 && <Funnel explanation={explanation} />}
      <Commands question={asked.now} />
    </div>
  );
}

function sayServing({ serves, hosts }: Explanation): string {
  return serves ? `${count(serves)} of ${count(hosts)} ${hosts === 1 ? "host serves" : "hosts serve"} it` : "No host serves it";
}

interface VerdictOf {
  asked: Asked;
  capacity: Capacity | undefined;
  explanation: Explanation;
  /** Counts for longer; null if it is already as long as it may be. */
  longer: (() => void) | null;
}

function Verdict({ asked, capacity, explanation, longer }: VerdictOf) {
  const { serves: serving } = explanation;
  const isExact = capacity?.exact && capacity.complete;
  return (
    <header class="verdict">
      <p class="number-line">
        <strong>{sayServing(explanation)}</strong>
        {serving > 0 && (
          <span>
            {capacity ? `fits ${isExact ? "" : "at least "}${plural(capacity.total, "time")}` : "counting how often it fits…"}
          </span>
        )}
      </p>
      <p>
        <Name text={inUnits(explanation.summary)} />
      </p>
      {capacity && !capacity.complete && (
        <p class="stale" role="status">
          <strong>The count took too long and was stopped.</strong> It is a lower bound.{" "}
          {longer && (
            <button type="button" class="small" onClick={longer}>
              Count for up to 30 seconds
            </button>
          )}
        </p>
      )}
      {!explanation.complete && (
        <p class="dim">The time ran out: more changes than these may help.</p>
      )}
      {serving > 0 && (
        <p>
          <a href={address("fleet", "", { by: "question", question: render(asked.now) })}>Show on the fleet</a>
        </p>
      )}
    </header>
  );
}

/** What would help: changes to the question, and hosts that lack little. */
function Remedies({ asked, explanation }: { asked: Asked; explanation: Explanation }) {
  const constraints = new Map(explanation.constraints.map((each) => [each.id, each]));
  const { changes = [], near = [] } = explanation;
  return (
    <>
      {changes.length > 0 && (
        <section>
          <h2>Changes that help</h2>
          <ul class="remedies">
            {changes.map((each) => (
              <Remedy key={each.drop.join()} change={each} constraints={constraints} asked={asked} />
            ))}
          </ul>
        </section>
      )}
      {near.length > 0 && (
        <section>
          <h2>Nearest hosts</h2>
          <ul class="near">
            {near.map((host) => (
              <NearHost key={host.uuid} host={host} constraints={constraints} asked={asked} />
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

interface RemedyOf {
  change: Change;
  constraints: ReadonlyMap<string, Constraint>;
  asked: Asked;
}

/** A change in words, with a button for each request that the words are about. */
function Remedy({ change: { drop, text, offers }, constraints, asked }: RemedyOf) {
  const dropped = drop.map((id) => constraints.get(id)!);
  const ways = offers.length ? offers.map(({ amounts }) => amounts) : [[]];
  return (
    <li>
      {ways.map((amounts, number) => {
        const terms = termsOf(asked.now, dropped, amounts);
        if (!terms) return null;
        const told = number ? ` ${amounts[0]!.amount}` : " it";
        return (
          <button
            key={number}
            type="button"
            class="small"
            aria-label={`Try${told}: ${text}`}
            onClick={() => change({ off: withTerms(asked.off, terms) })}
          >
            Try{told}
          </button>
        );
      })}
      <span>
        <Name text={inUnits(text)} />
      </span>
    </li>
  );
}

interface NearOf {
  host: Near;
  constraints: ReadonlyMap<string, Constraint>;
  asked: Asked;
}

/** A host that lacks little, and one button for all that it would need. */
function NearHost({ host, constraints, asked }: NearOf) {
  const { fleet } = useFleet();
  const help = helpOf(host, constraints, (uuid) => fleet?.providers.get(uuid));
  return (
    <li>
      <a href={address("host", host.uuid)}>
        <Name text={host.name} />
      </a>
      {help && (
        <button type="button" class="small" onClick={() => change({ give: [...asked.give, ...help.terms] })}>
          As if it {help.text}
        </button>
      )}
      <ul>
        {host.unmet.map((unmet) => (
          <Lack key={unmet.id} unmet={unmet} host={host} asked={asked} name={constraints.get(unmet.id)?.resource_class ?? ""} />
        ))}
      </ul>
    </li>
  );
}

interface LackOf {
  unmet: Unmet;
  /** The resource class that it is about. */
  name: string;
  host: Near;
  asked: Asked;
}

function Lack({ unmet, name, host, asked }: LackOf) {
  const { text, holders = [] } = unmet;
  return (
    <li>
      <Name text={inUnits(text)} />
      {holders.length > 0 && (
        <details>
          <summary>{plural(holders.length, "consumer")} of {name}</summary>
          <ul class="holders">
            {holders.map(({ consumer, amount: held, type, project }) => (
              <li key={consumer}>
                <a class="mono" href={address("consumers", consumer)}>
                  {short(consumer)}
                </a>{" "}
                holds {amount(name, held)}
                <span class="dim">
                  {type ? ` · ${type}` : ""}
                  {project && (
                    <>
                      {" · project "}
                      <Id id={project} kind="projects" />
                    </>
                  )}
                </span>
                {isEnough(held, unmet, host) && (
                  <button type="button" class="small" onClick={() => change({ ignore: [...asked.ignore, consumer] })}>
                    As if it were gone
                  </button>
                )}
              </li>
            ))}
          </ul>
        </details>
      )}
    </li>
  );
}

type Candidate = Candidates["allocation_requests"][number];

function First({ candidates, asked }: { candidates: Candidates; asked: Asked }) {
  const { fleet } = useFleet();
  const name = (uuid: string) => fleet?.providers.get(uuid)?.name ?? short(uuid);
  const rows = candidates.allocation_requests.slice(0, 10);
  const rootOf = ({ allocations }: Candidate) => {
    const [first = ""] = Object.keys(allocations);
    return candidates.provider_summaries[first]?.root_provider_uuid ?? first;
  };
  const columns: Column<Candidate>[] = [
    {
      id: "host",
      title: "Host",
      kind: "name",
      cell: (row) => (
        <a href={address("host", rootOf(row))}>
          <Name text={name(rootOf(row))} />
        </a>
      ),
    },
    {
      id: "takes",
      title: "Takes",
      cell: (row) =>
        Object.entries(row.allocations).map(([uuid, { resources }]) => (
          <div key={uuid}>
            {uuid !== rootOf(row) && (
              <span class="dim">
                <Name text={name(uuid)} />:{" "}
              </span>
            )}
            {sayAmounts(Object.entries(resources))}
          </div>
        )),
    },
    {
      id: "without",
      title: "What if",
      cell: (row) => (
        <button
          type="button"
          class="small"
          aria-label={`As if it were not there: ${name(rootOf(row))}`}
          onClick={() => change({ leave: [...new Set([...asked.leave, rootOf(row)])] })}
        >
          As if it were not there
        </button>
      ),
    },
  ];
  return (
    <section>
      <h2>First candidates</h2>
      <Table
        label="First candidates"
        name="candidates"
        columns={columns}
        rows={rows}
        keyOf={(_, number) => number}
        list={() => ({
          columns: ["candidate", "provider", "name", "class", "amount"],
          rows: rows.flatMap(({ allocations }, number) =>
            Object.entries(allocations).flatMap(([uuid, { resources }]) =>
              Object.entries(resources).map(([each, value]) => [number + 1, uuid, name(uuid), each, value]),
            ),
          ),
        })}
      />
    </section>
  );
}

/** Each constraint of the question, and whether one host meets it. */
function Judged({ host: { uuid, name, serves, constraints }, explanation }: { host: Host; explanation: Explanation }) {
  const texts = new Map(explanation.constraints.map(({ id, text }) => [id, text]));
  return (
    <section class="judged">
      <h2>
        <a href={address("host", uuid)}>
          <Name text={name} />
        </a>{" "}
        {serves ? "serves it" : "does not serve it"}{" "}
        <button type="button" class="small" onClick={() => change({ host: null })}>
          All hosts only
        </button>
      </h2>
      <ul>
        {constraints.map(({ id, met, text }) => (
          <li key={id} class={met ? "met" : "unmet"}>
            <strong>{met ? "met" : "not met"}</strong> <Name text={inUnits(texts.get(id) ?? id)} />
            {text && (
              <span class="dim">
                {" – "}
                <Name text={inUnits(text)} />
              </span>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Funnel({ explanation: { constraints, hosts } }: { explanation: Explanation }) {
  const columns: Column<Constraint>[] = [
    { id: "id", value: ({ id }) => id },
    { id: "text", title: "Constraint", kind: "name", value: ({ text }) => text, cell: ({ text }) => <Name text={inUnits(text)} /> },
    { id: "before", value: ({ before }) => before },
    { id: "after", title: "Hosts left", kind: "number", value: ({ after }) => after },
    { id: "part", title: "", cell: ({ before, after }) => <Length part={after} whole={hosts} faint={before} /> },
    { id: "alone", title: "By itself", kind: "number", hint: "hosts that meet it, and nothing else that is asked", value: ({ alone }) => alone ?? null },
    {
      id: "gain",
      title: "Keeps out alone",
      kind: "number",
      hint: "hosts that would serve if only this were not asked",
      value: ({ gain }) => gain ?? null,
      cell: ({ gain }) => (gain ? count(gain) : "–"),
    },
  ];
  return (
    <section>
      <h2>Hosts left after each constraint</h2>
      <Table label="Hosts left after each constraint" name="constraints" className="funnel" columns={columns} rows={constraints} keyOf={({ id }) => id} />
    </section>
  );
}

function Commands({ question }: { question: Question }) {
  const client = openstack(question);
  return (
    <p class="row commands-row">
      <span class="dim">Copy as</span>
      <Copy shown={false} label="curl" text={curl(ROOT.href, question)} />
      {client && <Copy shown={false} label="openstack" text={client} />}
      <Copy shown={false} label="placement-explain" text={explain(question)} />
    </p>
  );
}
