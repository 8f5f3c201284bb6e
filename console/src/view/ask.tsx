// Ask: which hosts serve a request, how many times it fits, and if none serves, why.

import { useEffect, useLayoutEffect, useMemo, useState } from "preact/hooks";
import { type Failure, get, wrap } from "../api.ts";
import { curl, explain, openstack } from "../command.ts";
import { given, imagine, sayGiven } from "../imagine.ts";
import { fromFlavor, isEmpty, parse, parseTerm, render, termsOf, without, withTerms, type Question } from "../question.ts";
import { ROOT } from "../root.ts";
import { address, change, recall, type Place as Here } from "../route.ts";
import { useSource } from "../source.ts";
import { store, useFleet } from "../store.ts";
import { amount, count, plural, short } from "../unit.ts";
import type { Asked as Host, Candidates, Capacity, Change, Constraint, Explanation, Near, Unmet } from "../wire.ts";
import { Export } from "./export.tsx";
import { Copy, Failed, Id, Known, Length, Name } from "./part.tsx";
import { Place } from "./place.tsx";
import { Chip, QuestionForm } from "./question.tsx";

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
  return (
    <>
      <div class="ask">
        <section aria-label="The question">
          <Paste text={text} />
          <QuestionForm question={asked.question} ask={(question) => change({ q: render(question), off: null }, "replace")} />
          <KnownNames />
        </section>
        <section aria-label="The answer" aria-live="polite">
          <Chips asked={asked} />
          {isEmpty(asked.question) ? <Nothing /> : <Answer asked={asked} />}
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
  const [wrong, setWrong] = useState("");
  // Before the page is drawn, or the field shows the question before this one for a frame.
  useLayoutEffect(() => setDraft(text), [text]);
  const take = (given: string) => {
    setDraft(given);
    setWrong("");
    if (!given.trim().startsWith("{")) {
      change({ q: given.trim() && render(parse(given)), off: null }, "replace");
      return;
    }
    try {
      change({ q: render(fromFlavor(given)), off: null }, "replace");
    } catch {
      setWrong("This looks like JSON, but is not valid.");
    }
  };
  return (
    <label class="field paste">
      <span>Query string, or the JSON of a flavor</span>
      <textarea
        rows={3}
        spellcheck={false}
        value={draft}
        onChange={(event) => take(event.currentTarget.value)}
        onPaste={(event) => {
          const { currentTarget } = event;
          setTimeout(() => take(currentTarget.value));
        }}
        aria-describedby="paste-wrong"
      />
      <span id="paste-wrong" role="alert">
        {wrong}
      </span>
    </label>
  );
}

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

function Answer({ asked }: { asked: Asked }) {
  const [times, setTimes] = useState(0);
  const [seconds, setSeconds] = useState("");
  const { answers, failure, busy } = useAnswers(asked, times, seconds);
  const { explanation, capacity, candidates } = answers;
  return (
    <div class="answer" aria-busy={busy}>
      {failure && <Failed failure={failure} retry={() => setTimes(times + 1)} />}
      {explanation && (
        <Verdict asked={asked} capacity={capacity} explanation={explanation} longer={seconds ? null : () => setSeconds(LONGER)} />
      )}
      {!explanation && !failure && <p class="state">Asking…</p>}
      {explanation?.host?.map((host) => (
        <Judged key={host.uuid} host={host} explanation={explanation} />
      ))}
      {explanation && explanation.serves === 0 && <Remedies asked={asked} explanation={explanation} />}
      {candidates && candidates.allocation_requests.length > 0 && <First candidates={candidates} asked={asked} />}
      {explanation && explanation.serves > 0 && isReal(asked) && <Place query={render(asked.now)} />}
      {explanation && explanation.constraints.length > 0 && <Funnel explanation={explanation} />}
      <Commands question={asked.now} />
    </div>
  );
}

interface VerdictOf {
  asked: Asked;
  capacity: Capacity | undefined;
  explanation: Explanation;
  /** Counts for longer; null if it is already as long as it may be. */
  longer: (() => void) | null;
}

function Verdict({ asked, capacity, explanation, longer }: VerdictOf) {
  const { serves: serving, hosts } = explanation;
  const isExact = capacity?.exact && capacity.complete;
  return (
    <header class="verdict">
      <p class="number-line">
        <strong>
          {serving ? `${count(serving)} of ${count(hosts)} ${hosts === 1 ? "host serves" : "hosts serve"} it` : "No host serves it"}
        </strong>
        {serving > 0 && (
          <span>
            {capacity ? `fits ${isExact ? "" : "at least "}${plural(capacity.total, "time")}` : "counting how often it fits…"}
          </span>
        )}
      </p>
      <p>
        <Name text={explanation.summary} />
      </p>
      {capacity && !capacity.complete && (
        <p class="stale" role="status">
          <strong>Counting how often it fits took too long and was stopped.</strong> What was counted until then is certain; it may fit
          more often.{" "}
          {longer && (
            <button type="button" class="small" onClick={longer}>
              Count for up to 30 seconds
            </button>
          )}
        </p>
      )}
      {!explanation.complete && (
        <p class="dim">The time ran out before all possible changes were tried: there may be more.</p>
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
          <h2>What would help</h2>
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
        <Name text={text} />
      </span>
    </li>
  );
}

interface NearOf {
  host: Near;
  constraints: ReadonlyMap<string, Constraint>;
  asked: Asked;
}

function NearHost({ host, constraints, asked }: NearOf) {
  return (
    <li>
      <a href={address("host", host.uuid)}>
        <Name text={host.name} />
      </a>
      <ul>
        {host.unmet.map((unmet) => (
          <Lack key={unmet.id} unmet={unmet} constraint={constraints.get(unmet.id)} host={host} asked={asked} />
        ))}
      </ul>
    </li>
  );
}

interface LackOf {
  unmet: Unmet;
  constraint: Constraint | undefined;
  host: Near;
  asked: Asked;
}

function Lack({ unmet, constraint, host, asked }: LackOf) {
  const { text, holders = [] } = unmet;
  const { fleet } = useFleet();
  const name = constraint?.resource_class ?? "";
  const provider = unmet.provider ?? host.uuid;
  const help = constraint && imagine(constraint, unmet, fleet?.providers.get(provider));
  return (
    <li>
      <Name text={text} />
      {help && (
        <button type="button" class="small" onClick={() => change({ give: [...asked.give, `${provider}:${help.term}`] })}>
          As if it {help.text}
        </button>
      )}
      {holders.length > 0 && (
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
              <button type="button" class="small" onClick={() => change({ ignore: [...asked.ignore, consumer] })}>
                As if it were gone
              </button>
            </li>
          ))}
        </ul>
      )}
    </li>
  );
}

function First({ candidates, asked }: { candidates: Candidates; asked: Asked }) {
  const { fleet } = useFleet();
  const name = (uuid: string) => fleet?.providers.get(uuid)?.name ?? short(uuid);
  const rows = candidates.allocation_requests.slice(0, 10);
  return (
    <section>
      <h2>First candidates</h2>
      <div class="wide" tabIndex={0} role="region" aria-label="First candidates">
        <table>
          <thead>
            <tr>
              <th>Host</th>
              <th>Takes</th>
              <th>What if</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(({ allocations }, number) => {
              const [first = ""] = Object.keys(allocations);
              const root = candidates.provider_summaries[first]?.root_provider_uuid ?? first;
              return (
                <tr key={number}>
                  <td class="name">
                    <a href={address("host", root)}>
                      <Name text={name(root)} />
                    </a>
                  </td>
                  <td>
                    {Object.entries(allocations).map(([uuid, { resources }]) => (
                      <div key={uuid}>
                        {uuid !== root && (
                          <span class="dim">
                            <Name text={name(uuid)} />:{" "}
                          </span>
                        )}
                        {Object.entries(resources)
                          .map(([each, value]) => `${amount(each, value)} ${each}`)
                          .join(", ")}
                      </div>
                    ))}
                  </td>
                  <td>
                    <button
                      type="button"
                      class="small"
                      aria-label={`As if it were not there: ${name(root)}`}
                      onClick={() => change({ leave: [...new Set([...asked.leave, root])] })}
                    >
                      As if it were not there
                    </button>
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      <Export
        name="candidates"
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
            <strong>{met ? "met" : "not met"}</strong> <Name text={texts.get(id) ?? id} />
            {text && (
              <span class="dim">
                {" – "}
                <Name text={text} />
              </span>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Funnel({ explanation: { constraints, hosts } }: { explanation: Explanation }) {
  return (
    <section>
      <h2>One after the other</h2>
      <div class="wide" tabIndex={0} role="region" aria-label="Hosts left after each constraint">
        <table class="funnel">
          <thead>
            <tr>
              <th>Constraint</th>
              <th class="number">Hosts left</th>
              <td class="bar-column" />
              <th class="number" title="hosts that meet it, and nothing else that is asked">
                By itself
              </th>
              <th class="number" title="hosts that would serve if only this were not asked">
                Keeps out alone
              </th>
            </tr>
          </thead>
          <tbody>
            {constraints.map(({ id, text, before, after, alone, gain }) => (
              <tr key={id}>
                <td class="name"><Name text={text} /></td>
                <td class="number">{count(after)}</td>
                <td>
                  <Length part={after} whole={hosts} faint={before} />
                </td>
                <td class="number">{alone === undefined ? "–" : count(alone)}</td>
                <td class="number">{gain ? count(gain) : "–"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <Export
        name="constraints"
        list={() => ({
          columns: ["id", "text", "before", "after", "alone", "gain"],
          rows: constraints.map(({ id, text, before, after, alone, gain }) => [id, text, before, after, alone ?? null, gain ?? null]),
        })}
      />
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
