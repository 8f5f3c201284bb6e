// History: what has changed, when, by whom, and what was before; and levels over days.

import { useMemo, useState } from "preact/hooks";
import { get } from "../api.ts";
import type { Fleet, Sum } from "../fleet.ts";
import { goBack, group, isOfConsumer, knownSince, periodOf, tell, tellGroup, who, type Entry, type Level } from "../history.ts";
import { idOf } from "../name.ts";
import { address, change, type Place } from "../route.ts";
import { session } from "../session.ts";
import { useSource } from "../source.ts";
import { store, useFleet, useTimes } from "../store.ts";
import { amount, isBinary, plural, short, when } from "../unit.ts";
import type { Listing } from "../export.ts";
import { Until } from "./lease.tsx";
import { Failed, Field, Id, Loading, Name, Select } from "./part.tsx";
import { Plot } from "./plot.tsx";
import { Old, useReading } from "./reading.tsx";
import { Table, type Column } from "./table.tsx";

export const RULE = "placement:ledger:history";

const ABOUT: [string, string][] = [
  ["", "everything"],
  ["root", "a host (UUID)"],
  ["provider", "one provider (UUID)"],
  ["consumer", "a consumer (UUID)"],
  ["project_id", "a project"],
  ["user_id", "a user"],
  ["request_id", "a request"],
];
const TYPES: [string, string][] = [
  ["", "all changes"],
  ["allocations", "allocations"],
  ["lease", "leases"],
  ["inventory", "inventories"],
  ["provider", "providers"],
  ["traits", "traits"],
  ["aggregates", "aggregates"],
  ["consumer", "owners of consumers"],
  ["trait,resource_class", "names"],
];

const PERIODS = ["hour", "night", "week"];
// The zone of the reader's clock.
const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

export function HistoryView({ place: { query } }: { place: Place }) {
  const about = query.get("about") ?? "";
  const of = query.get("of") ?? "";
  const type = query.get("type") ?? "";
  // Links from before have times of the reader's clock.
  const [from, to] = ["from", "to"].map((name) => utc(query.get(name) ?? "")) as [string, string];
  const [days, name] = [query.get("days") ?? "7", query.get("class") ?? ""];
  const filters = {
    ...(about && of ? { [about]: of } : {}),
    ...(type ? { type } : {}),
    ...(from ? { from } : {}),
    ...(to ? { to } : {}),
  };
  return (
    <>
      <Levels days={days} name={name} choose={(changes) => change(changes)} />
      <form class="controls" onSubmit={(event) => event.preventDefault()}>
        <Select label="History of" value={about} options={ABOUT} choose={(next) => change({ about: next, of: null })} />
        {about && (
          <Field label="Which">
            <input value={of} size={36} onChange={(event) => change({ of: about === "project_id" ? idOf("projects", event.currentTarget.value) : event.currentTarget.value.trim() })} />
          </Field>
        )}
        <Select label="What" value={type} options={TYPES} choose={(next) => change({ type: next })} />
        <Field label={`From (${ZONE})`}>
          <input type="datetime-local" value={local(from)} onChange={(event) => change({ from: utc(event.currentTarget.value) })} />
        </Field>
        <Field label={`Until (${ZONE})`}>
          <input type="datetime-local" value={local(to)} onChange={(event) => change({ to: utc(event.currentTarget.value) })} />
        </Field>
        <span class="row" role="group" aria-label="Last">
          {PERIODS.map((each) => (
            <button key={each} type="button" class="small" onClick={() => change(periodOf(each, new Date()))}>
              Last {each}
            </button>
          ))}
          {(from || to) && (
            <button type="button" class="small" onClick={() => change({ from: null, to: null })}>
              Any time
            </button>
          )}
        </span>
      </form>
      {about && !of ? <p class="state">The UUID or id is missing.</p> : <HistoryList filters={filters} size={50} />}
    </>
  );
}

/** A time as the field for it has it, by the reader's clock; empty if it is none. */
function local(utc: string): string {
  const time = new Date(utc);
  if (Number.isNaN(time.getTime())) return "";
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** A time of the reader's clock, as the service expects it, and readers elsewhere. */
function utc(local: string): string {
  const time = new Date(local);
  return Number.isNaN(time.getTime()) ? local : time.toISOString();
}

interface Answer {
  history: Entry[];
  /** Of what was before, nothing is recorded. */
  begins: string;
  marker?: string;
}

function path(filters: Record<string, string>, size: number, marker: string): string {
  const query = new URLSearchParams({ ...filters, limit: String(size), ...(marker ? { marker } : {}) });
  return `ledger/v1/history?${query}`;
}

interface ListOf {
  filters: Record<string, string>;
  size: number;
}

/** Entries, the newest first, read again when something has changed. */
export function HistoryList({ filters, size }: ListOf) {
  const [shown, setShown] = useState({ asked: "", pages: 1 });
  const times = useTimes();
  const { fleet } = useFleet();
  const asked = path(filters, size, "");
  const pages = shown.asked === asked ? shown.pages : 1;
  const read = async (signal: AbortSignal) => {
    const history: Entry[] = [];
    let marker = "";
    for (let page = 0; page < pages && (page === 0 || marker); page += 1) {
      const answer = await get<Answer>(path(filters, size, marker), { signal });
      history.push(...answer.history);
      marker = answer.marker ?? "";
    }
    return { history, marker };
  };
  const { answer: found, moment, failure, again } = useReading(asked, read, `${pages} ${times}`);
  if (failure?.status === 404) return <p class="state">{failure.detail}</p>;
  if (failure && (failure.rule || !found)) return <Failed failure={failure} retry={again} />;
  if (!found) return <Loading what="the history" />;
  const { history, marker } = found;
  if (!history.length) return <p class="dim">Nothing is recorded.</p>;
  return (
    <>
      {failure && <Old what="the history" moment={moment!} failure={failure} again={again} />}
      <Table
        label="History"
        name="history"
        className="history"
        columns={columnsOf(fleet)}
        rows={group(history)}
        keyOf={([first]) => first!.id}
        page={LONGEST}
        list={() => list(history)}
      />
      {marker && (
        <p>
          <button type="button" onClick={() => setShown({ asked, pages: pages + 1 })}>
            Show earlier
          </button>{" "}
          <span class="dim">the last {plural(history.length, "change")} are shown</span>
        </p>
      )}
    </>
  );
}

// What is shown at once was asked for.
const LONGEST = 100_000;

function list(history: readonly Entry[]): Listing {
  return {
    columns: ["time", "type", "subject", "what", "who", "request", "request_id", "before", "after"],
    rows: history.map((each) => [
      each.time,
      each.type,
      each.subject,
      tell(each).join("; "),
      who(each),
      each.request ?? null,
      each.request_id ?? null,
      each.before && JSON.stringify(each.before),
      each.after && JSON.stringify(each.after),
    ]),
  };
}

/** Each row is what one request did: one entry, or several that are behind one line. */
function columnsOf(fleet: Fleet | null): Column<Entry[]>[] {
  return [
    { id: "when", title: "When", cell: ([first]) => <Until time={first!.time} /> },
    { id: "about", title: "About", kind: "name", cell: (entries) => (entries.length > 1 ? tellGroup(entries) : <About entry={entries[0]!} fleet={fleet} />) },
    { id: "what", title: "What", kind: "name", cell: (entries) => <What entries={entries} fleet={fleet} /> },
    { id: "who", title: "Who", kind: "name", cell: ([first]) => <Name text={who(first!)} /> },
    { id: "request", title: "Request", kind: "name", cell: ([first]) => <Request entry={first!} /> },
  ];
}

function What({ entries, fleet }: { entries: Entry[]; fleet: Fleet | null }) {
  const lines = (entry: Entry) =>
    tell(entry).map((line) => (
      <div key={line}>
        <Name text={line} />
      </div>
    ));
  if (entries.length === 1) return <>{lines(entries[0]!)}</>;
  return (
    <details>
      <summary>{plural(entries.length, "change")} by one request</summary>
      <ul>
        {entries.map((entry) => (
          <li key={entry.id}>
            <About entry={entry} fleet={fleet} />
            {lines(entry)}
          </li>
        ))}
      </ul>
    </details>
  );
}

function Request({ entry: { request, request_id: id } }: { entry: Entry }) {
  return (
    <>
      {request && <Name text={request.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/, "…")} />}{" "}
      {id && (
        <a class="mono dim" href={address("history", "", { about: "request_id", of: id })} title={id}>
          {id.slice(0, 12)}
        </a>
      )}
    </>
  );
}

interface RowOf {
  entry: Entry;
  /** What providers are called now, where the entry does not say what they were called. */
  fleet: Fleet | null;
}

function About({ entry, fleet }: RowOf) {
  const { type, subject, names = {}, consumer, after, before } = entry;
  if (!subject) return null;
  if (isOfConsumer(entry)) {
    return (
      <>
        consumer{" "}
        <a class="mono" href={address("consumers", subject)} title={subject}>
          {short(subject)}
        </a>
        {consumer?.["project_id"] && <span class="dim"> of <Id id={consumer["project_id"]} kind="projects" /></span>}
      </>
    );
  }
  if (type.startsWith("trait.") || type.startsWith("resource_class.")) return <Name text={subject} />;
  const name = type.startsWith("provider.") ? (after ?? before)?.["name"] : (names[subject] ?? fleet?.providers.get(subject)?.name);
  return (
    <a href={address("host", subject)} title={subject}>
      <Name text={String(name ?? short(subject))} />
    </a>
  );
}

/** The history of one thing, for its page; nothing for those who may not see it. */
export function HistoryOf({ filters }: { filters: Record<string, string> }) {
  const { denied } = useSource(session);
  if (denied.has(RULE)) return null;
  return (
    <section>
      <h2>History</h2>
      <HistoryList filters={filters} size={10} />
    </section>
  );
}

const DAYS: [string, string][] = [
  ["1", "a day"],
  ["7", "7 days"],
  ["30", "30 days"],
];
const DAY = 86_400_000;
const PAGE = 5_000;
const PAGES = 10;

interface LevelsOf {
  days: string;
  name: string;
  choose: (changes: Record<string, string>) => void;
}

/** What is used and free of a class over days. */
function Levels({ days, name, choose }: LevelsOf) {
  const { fleet, failure, reading } = useFleet();
  if (!fleet && failure) return null;
  if (!fleet || fleet.isPartial) {
    return (
      <section aria-label="Levels" class="level-room">
        <Loading what="providers" read={reading} />
      </section>
    );
  }
  if (!fleet.classes.length) return null;
  const chosen = fleet.totals.has(name) ? name : fleet.classes[0]![0];
  return (
    <section aria-label="Levels" class="level-room">
      <form class="controls" onSubmit={(event) => event.preventDefault()}>
        <Select
          label="Used and free of"
          value={chosen}
          options={fleet.classes.map(([each]) => [each, each] as const)}
          choose={(next) => choose({ class: next })}
        />
        <Select label="Over" value={days} options={DAYS} choose={(next) => choose({ days: next })} />
      </form>
      <LevelPlot key={`${days} ${chosen}`} name={chosen} days={Number(days) || 7} filters={NONE} sum={fleet.totals.get(chosen)!} />
    </section>
  );
}

const NONE: Record<string, string> = {};

interface PlotOf {
  name: string;
  days: number;
  /** Of which part of the cloud; `sum` is what that has now. */
  filters: Record<string, string>;
  sum: Sum;
}

interface Known {
  past: Level[];
  /** From when on everything was read. */
  from: number;
  until: number;
  isWhole: boolean;
  /** Whether the journal does not know what was before. */
  isCut: boolean;
}

/** The number of an entry, in the order of the journal. */
function positionOf(cursor: string): number {
  return Number(cursor.split(".")[1]);
}

export function LevelPlot({ name, days, filters, sum }: PlotOf) {
  const [pages, setPages] = useState(PAGES);
  const list = async (signal: AbortSignal) => {
    const until = Date.now();
    // What the fleet does not contain yet must not be taken off it.
    const seen = store.value.cursor && positionOf(store.value.cursor);
    const asked = {
      ...filters,
      type: "allocations.changed,inventory.changed,provider.deleted",
      from: new Date(until - days * DAY).toISOString(),
    };
    const read: Entry[] = [];
    let [marker, begins] = ["", 0];
    for (let page = 0; page < pages && (page === 0 || marker); page += 1) {
      const answer = await get<Answer>(path(asked, PAGE, marker), { signal });
      begins = Date.parse(answer.begins);
      read.push(...answer.history.filter(({ cursor }) => !seen || positionOf(cursor) <= seen));
      marker = answer.marker ?? "";
    }
    return { read, begins, until, isWhole: !marker, sum };
  };
  const question = `ledger/v1/history ${JSON.stringify([days, filters])}`;
  const { answer: entries, failure, again } = useReading(question, list, pages);
  const known = useMemo((): Known | null => {
    if (!entries) return null;
    const { read, begins, until, isWhole } = entries;
    const past = goBack(read, name, { at: until, capacity: entries.sum.capacity, used: entries.sum.used });
    const oldest = isWhole ? until - days * DAY : Date.parse(read.at(-1)?.time ?? "") || until;
    const since = knownSince(read, begins);
    // The clocks of the service and of the browser may differ.
    return { past, from: Math.min(until, Math.max(oldest, since)), until, isWhole, isCut: since > oldest };
  }, [entries, name]);
  if (failure?.status === 404) return <p class="dim">{failure.detail}</p>;
  if (failure?.rule) return null;
  if (failure) return <Failed failure={failure} retry={again} />;
  if (!known) return <Loading what="the journal" />;
  const { past, from, until, isWhole, isCut } = known;
  const levels = [{ ...past[0]!, at: from }, ...past];
  return (
    <div class="panels levels">
      <Plot
        title={name}
        unit={`over ${plural(days, "day")}`}
        from={until - days * DAY}
        to={until}
        ends={[`${plural(days, "day")} ago`, "now"]}
        write={(value) => amount(name, value)}
        binary={isBinary(name)}
        lines={[
          { name: "used", points: levels.map(({ at, used }) => ({ at, value: used })) },
          { name: "free", points: levels.map(({ at, used, capacity }) => ({ at, value: Math.max(0, capacity - used) })) },
        ]}
      />
      {isCut && <p class="dim">The journal begins at {when(from)}: earlier levels are not known.</p>}
      {!isWhole && (
        <p class="dim">
          Changes since {when(from)} are shown: there are too many to read all.{" "}
          <button type="button" class="small" onClick={() => setPages(pages + PAGES)}>
            Read further back
          </button>
        </p>
      )}
    </div>
  );
}
