// Fleet: one cell per host, coloured by what the reader wants to know.

import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { get } from "../api.ts";
import { arrange, type Block } from "../arrange.ts";
import { parseFind, save, saved } from "../find.ts";
import type { Fleet, Host, Sum } from "../fleet.ts";
import { DISABLED } from "../health.ts";
import { live } from "../live.ts";
import { idOf, names } from "../name.ts";
import { address, change, type Place } from "../route.ts";
import { KINDS, makeScale, type Kind, type Scale } from "../scale.ts";
import { useSource } from "../source.ts";
import { refresh, store, useFleet } from "../store.ts";
import { count, exact, percent, plural, usedOf } from "../unit.ts";
import type { Capacity, Part } from "../wire.ts";
import { FirstSteps } from "./first.tsx";
import { Legend } from "./legend.tsx";
import { FleetMap } from "./map.tsx";
import { Bar, Failed, Field, Known, Loading, Name, Select } from "./part.tsx";
import { Old, useReading, type Reading } from "./reading.tsx";
import { amountColumn, Table, type Column } from "./table.tsx";

const COLOURS: [Kind, string][] = [
  ["used", "used"],
  ["free", "free"],
  ["reserved", "reserved"],
  ["consumers", "number of consumers"],
  ["trait", "has a trait"],
  ["aggregate", "is in an aggregate"],
  ["question", "serves a question"],
];
const GROUPS: [string, string][] = [
  ["none", "not grouped"],
  ["aggregate", "aggregate"],
  ["prefix:1", "first part of the name"],
  ["prefix:2", "first two parts of the name"],
  ["prefix:3", "first three parts of the name"],
  ["trait", "trait"],
];
const ORDERS: [string, string][] = [
  ["name", "name"],
  ["most", "most first"],
  ["least", "least first"],
];

interface Asked {
  kind: Kind;
  of: string;
  group: string;
  sort: string;
  find: string;
  bins: string[];
  table: boolean;
  question: string;
}

function read({ query }: Place, fleet: Fleet | null): Asked {
  const kind = KINDS.find((each) => each === query.get("by")) ?? "used";
  const ofClass = kind === "used" || kind === "free" || kind === "reserved";
  return {
    kind,
    of: query.get("of") ?? (ofClass ? (fleet?.classes[0]?.[0] ?? "") : ""),
    group: query.get("group") ?? "none",
    sort: query.get("sort") ?? "name",
    find: query.get("find") ?? "",
    bins: (query.get("bins") ?? "").split(",").filter(Boolean),
    table: query.get("as") === "table",
    question: query.get("question") ?? "",
  };
}

/** What must be read before a choice can be shown. */
function parts({ kind, group, find }: Asked): Part[] {
  const needed: Part[] = [...parseFind(find).parts];
  if (kind === "trait" || group.startsWith("trait:")) needed.push("traits");
  if (kind === "consumers") needed.push("consumer_count");
  return needed;
}

const WHAT: Partial<Record<Kind, string>> = { consumers: "how many consumers there are", question: "how many times it fits" };

export function FleetView({ place }: { place: Place }) {
  const before = useFleet(...parts(read(place, null)));
  const { fleet, failure, reading, ready, changed } = before;
  const asked = useMemo(() => read(place, fleet), [place, fleet]);
  const question = asked.kind === "question" ? asked.question : "";
  const { answer: fits, ...counting } = useFits(question, fleet);
  if (failure && !ready) return <Failed failure={failure} retry={refresh} />;
  if (!fleet) return <Loading what="providers" read={reading} />;
  if (!fleet.hosts.length) return <FirstSteps />;
  let waiting = null;
  if (question && !fits && counting.failure) waiting = <Failed failure={counting.failure} retry={counting.again} />;
  else if (!ready || (question && !fits)) waiting = <Loading what={WHAT[asked.kind] ?? "traits and consumers"} read={reading} />;
  return (
    <>
      <Totals fleet={fleet} asked={asked} />
      {fits && counting.failure && (
        <Old what="the count" moment={counting.moment!} failure={counting.failure} again={counting.again} />
      )}
      {fits?.complete === false && (
        <p class="stale" role="status">
          <strong>The count took too long and was stopped.</strong> The numbers are lower bounds: hosts without one may serve, too.
        </p>
      )}
      <Picture
        fleet={fleet}
        asked={asked}
        changed={changed}
        fits={fits?.counts}
        waiting={waiting}
      />
    </>
  );
}

// The most seconds that the service may count.
const LONGEST = 30;

// How long the service is left alone before a fleet that goes on changing is counted again.
const REST = 5_000;

interface Fits {
  counts: Map<string, number>;
  complete: boolean;
  /** The fleet that was counted, how many times another had been, and how long it took. */
  of: Fleet["providers"];
  times: number;
  took: number;
}

/** How many times a question fits, by host; counted again when the fleet has changed. */
function useFits(question: string, fleet: Fleet | null): Reading<Fits> {
  const [times, setTimes] = useState(0);
  const path = `ledger/v1/capacity?${question}&most_hosts=1000000&seconds=${LONGEST}`;
  const count = async (signal: AbortSignal) => {
    const begun = performance.now();
    const { hosts, complete } = await get<Capacity>(path, { signal });
    const counts = new Map(hosts.map(({ uuid, count }) => [uuid, count]));
    return { counts, complete, of: fleet!.providers, times, took: performance.now() - begun };
  };
  const reading = useReading(path, question && fleet && !fleet.isPartial ? count : null, times);
  const { answer, failure } = reading;
  const isRefused = failure !== null && failure.status >= 400 && failure.status < 500;
  const isOld = answer !== null && answer.of !== fleet!.providers && !isRefused && (answer.times === times || failure !== null);
  useEffect(() => {
    if (!isOld) return;
    const pass = () => document.hidden || live.value.paused || setTimes(times + 1);
    // Most of the time of the service is left to others.
    const timer = setInterval(pass, Math.max(REST, 5 * answer.took));
    return () => clearInterval(timer);
  }, [isOld, failure]);
  return reading;
}

function Totals({ fleet, asked }: { fleet: Fleet; asked: Asked }) {
  const [all, setAll] = useState(false);
  const sums = useMemo(() => addUp(fleet), [fleet]);
  const shown = all ? sums : sums.slice(0, 6);
  return (
    <section aria-label="Totals by resource class" class="totals">
      {shown.map(([name, sum]) => {
        const chosen = asked.of === name;
        return (
          <button
            key={name}
            type="button"
            class="total"
            aria-pressed={chosen}
            onClick={() => change({ by: isOfClass(asked.kind) ? asked.kind : "used", of: name, bins: null })}
          >
            <span class="total-name" title={name}>
              {name}
            </span>
            <span class="total-part">{percent(sum.used, sum.capacity)}</span>
            <Bar name={name} sum={sum} />
            <span class="dim" title={`${exact(name, sum.used)} of ${count(sum.capacity)}`}>
              {usedOf(name, sum.used, sum.capacity, sum.total)}
            </span>
          </button>
        );
      })}
      {sums.length > shown.length && (
        <button type="button" class="small" onClick={() => setAll(true)}>
          {count(sums.length - shown.length)} classes more
        </button>
      )}
    </section>
  );
}

function isOfClass(kind: Kind): boolean {
  return kind === "used" || kind === "free" || kind === "reserved";
}

function addUp(fleet: Fleet): [string, Sum][] {
  return fleet.classes.map(([name]) => [name, fleet.totals.get(name)!]);
}

function Controls({ fleet, asked }: { fleet: Fleet; asked: Asked }) {
  const { kind, of, group, sort, find, table } = asked;
  const groupKind = group.startsWith("trait") ? "trait" : group;
  return (
    <form class="controls" onSubmit={(event) => event.preventDefault()}>
      <Select
        label="Colour by"
        value={kind}
        options={COLOURS}
        choose={(by) => change({ by, of: isOfClass(by as Kind) && isOfClass(kind) ? of : null, bins: null })}
      />
      {isOfClass(kind) && (
        <Select
          label="Class"
          value={of}
          options={fleet.classes.map(([name]) => [name, name] as const)}
          choose={(name) => change({ of: name, bins: null })}
        />
      )}
      {kind === "trait" && <TraitField fleet={fleet} value={of} choose={(name) => change({ of: name, bins: null })} />}
      {kind === "aggregate" && <AggregateField fleet={fleet} value={of} />}
      {kind === "question" && <QuestionField value={asked.question} />}
      <Select
        label="Group by"
        value={groupKind}
        options={GROUPS}
        choose={(next) => change({ group: next === "trait" ? "trait:" : next })}
      />
      {groupKind === "trait" && (
        <TraitField fleet={fleet} value={group.slice(6)} choose={(name) => change({ group: `trait:${name}` })} />
      )}
      <Select label="Sort by" value={sort} options={ORDERS} choose={(next) => change({ sort: next })} />
      <Find text={find} />
      <button type="button" aria-pressed={table} onClick={() => change({ as: table ? null : "table" })}>
        Table
      </button>
    </form>
  );
}

/** The field that finds hosts, with the searches that were saved. */
function Find({ text }: { text: string }) {
  const [known, setKnown] = useState(saved);
  const [isFull, setFull] = useState(false);
  const { fault } = parseFind(text);
  const isSaved = Object.values(known).includes(text);
  const put = () => {
    const name = isSaved ? Object.keys(known).find((each) => known[each] === text) : prompt("Save this search as");
    if (!name) return;
    setFull(!save(name, isSaved ? "" : text));
    setKnown(saved());
  };
  return (
    <div class="row find">
      <Field label="Find hosts">
        <input
          type="search"
          value={text}
          size={30}
          placeholder="name, trait:X and not class:Y"
          title="Words are parts of names. trait:, class:, aggregate:, project:, uuid:, and, or, not, ( ), * at the end of a name."
          aria-describedby="find-fault"
          onInput={(event) => change({ find: event.currentTarget.value }, "replace")}
        />
      </Field>
      {Object.keys(known).length > 0 && (
        <Select
          label="Saved searches"
          value={isSaved ? text : ""}
          options={[["", "choose"], ...Object.entries(known).map(([name, each]): [string, string] => [each, name])]}
          choose={(find) => change({ find })}
        />
      )}
      {text && !fault && (
        <button type="button" class="small" onClick={put}>
          {isSaved ? "Forget search" : "Save search"}
        </button>
      )}
      <span id="find-fault" role="alert">
        {fault ? `Not understood: ${fault}.` : isFull && "Not saved: the browser has no room for it."}
      </span>
    </div>
  );
}

function TraitField({ fleet, value, choose }: { fleet: Fleet; value: string; choose: (name: string) => void }) {
  const names = useMemo(() => {
    const found = new Set<string>();
    fleet.providers.forEach(({ traits }) => traits.forEach((name) => found.add(name)));
    return [...found].sort();
  }, [fleet]);
  return (
    <Field label="Trait">
      <input list="traits-of-fleet" value={value} onChange={(event) => choose(event.currentTarget.value)} />
      <datalist id="traits-of-fleet">
        {names.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </Field>
  );
}

function AggregateField({ fleet, value }: { fleet: Fleet; value: string }) {
  const sizes = useMemo(() => {
    const found = new Map<string, number>();
    fleet.hosts.forEach(({ root }) => root.aggregates.forEach((each) => found.set(each, (found.get(each) ?? 0) + 1)));
    return new Map([...found].sort((a, b) => b[1] - a[1]));
  }, [fleet]);
  return (
    <>
      <Field label="Aggregate">
        <input
          list="aggregates-of-fleet"
          value={value}
          size={36}
          onChange={(event) => change({ of: idOf("aggregates", event.currentTarget.value), bins: null })}
        />
      </Field>
      <Known id="aggregates-of-fleet" kind="aggregates" ids={[...sizes.keys()]} tell={(id) => plural(sizes.get(id)!, "host")} />
    </>
  );
}

function QuestionField({ value }: { value: string }) {
  return (
    <Field label="Question">
      <input
        value={value}
        size={36}
        placeholder="resources=VCPU:2"
        onChange={(event) => change({ question: event.currentTarget.value, bins: null })}
      />
    </Field>
  );
}

interface Pictured {
  fleet: Fleet;
  asked: Asked;
  fits: Map<string, number> | undefined;
  /** When hosts have just changed, by UUID of the root. */
  changed: ReadonlyMap<string, Date>;
  /** What is shown instead of the hosts until everything is there. */
  waiting: ComponentChildren;
}

function Picture({ fleet, asked, fits, changed, waiting }: Pictured) {
  const { kind, of, group, sort, find, bins, table } = asked;
  const known = useSource(names);
  const named = useMemo(() => (find ? fleet.hosts.filter(parseFind(find).test) : fleet.hosts), [fleet, find, known]);
  const scale = useMemo(
    () => makeScale(fleet.hosts, { kind, of, fits, chosen: bins }),
    [fleet, kind, of, fits, known, bins.join()],
  );
  const hosts = useMemo(() => {
    const chosen = new Set(scale.bins.flatMap(({ id }, bin) => (bins.includes(id) ? [bin] : [])));
    return chosen.size ? named.filter((host) => chosen.has(scale.binOf(host))) : named;
  }, [named, scale]);
  const blocks = useMemo(() => arrange(hosts, { group, sort }, scale), [hosts, group, sort, scale, known]);
  const disabled = useDisabled(fleet);
  const number = useMemo(() => hosts.filter(({ root }) => disabled.has(root.uuid)).length, [hosts, disabled]);
  const all = hosts.length === fleet.hosts.length;
  const shown = all ? plural(hosts.length, "host") : `${count(hosts.length)} of ${plural(fleet.hosts.length, "host")}`;
  return (
    <>
      <div class="tools">
        <Controls fleet={fleet} asked={asked} />
        {!waiting && <Legend scale={scale} hosts={named} chosen={bins} />}
      </div>
      {waiting || (
        <>
      <p class="caption">
        <strong>{shown}</strong>
        {fleet.isPartial && (
          <span class="dim partial" role="status">
            so far
          </span>
        )}
        {!all && (
          <button type="button" class="small" onClick={() => change({ find: null, bins: null })}>
            Show all
          </button>
        )}
        {changed.size > 0 && (
          <span class="dim">{plural(changed.size, "host")} changed in the last minute, marked by a dashed frame and a dot</span>
        )}
        {number > 0 && <span class="dim">{count(number)} disabled{table ? "" : ", marked by a cross"}</span>}
        {group === "aggregate" && <span class="dim">hosts in several aggregates appear in each of them</span>}
      </p>
      {!hosts.length && <p class="state">No host matches.</p>}
      {hosts.length > 0 && table && <Hosts blocks={blocks} scale={scale} fleet={fleet} changed={changed} disabled={disabled} />}
      {hosts.length > 0 && !table && <FleetMap blocks={blocks} scale={scale} named={shown} changed={changed} disabled={disabled} />}
        </>
      )}
    </>
  );
}

/** The roots of hosts that schedulers leave out, read again when traits have changed. */
function useDisabled({ isPartial, providers }: Fleet): ReadonlySet<string> {
  const { refreshes, cursor } = useSource(store);
  const { traits } = useSource(live);
  const read = (signal: AbortSignal) => get<{ providers: { root_provider_uuid: string }[] }>(DISABLED_HOSTS, { signal });
  const { answer } = useReading(DISABLED_HOSTS, isPartial ? null : read, cursor === null ? providers : `${refreshes} ${traits}`);
  return useMemo(() => new Set(answer?.providers.map(({ root_provider_uuid: root }) => root)), [answer]);
}

const DISABLED_HOSTS = `ledger/v1/fleet?required=${DISABLED}&fields=parent`;

interface TableOf {
  blocks: Block[];
  scale: Scale;
  fleet: Fleet;
  changed: ReadonlyMap<string, Date>;
  disabled: ReadonlySet<string>;
}

function Hosts({ blocks, scale, fleet, changed, disabled }: TableOf) {
  const rows = blocks.flatMap((block) => block.hosts.map((host): Listed => ({ block, host })));
  const names = fleet.classes.map(([name]) => name);
  const columns: Column<Listed>[] = [
    { id: "group", value: ({ block }) => block.id },
    { id: "group_name", ...(blocks.length > 1 ? { title: "Group" } : {}), kind: "name", value: ({ block }) => block.label },
    { id: "uuid", value: ({ host }) => host.root.uuid },
    { id: "name", title: "Host", kind: "name", value: ({ host }) => host.root.name, cell: ({ host }) => <HostCell host={host} at={changed.get(host.root.uuid)} isDisabled={disabled.has(host.root.uuid)} /> },
    // Without more words it could be the name of a later column.
    { id: `coloured by ${scale.title}`, title: scale.title, value: ({ host }) => scale.valueOf(host), cell: ({ host }) => scale.tell(host) },
    ...names.flatMap((name, place): Column<Listed>[] => {
      const sum = ({ host }: Listed) => host.sums.get(name);
      const free = { ...amountColumn<Listed>(name, (row) => sum(row)?.free), id: `${name} free`, title: `${name} free`, isNotSaved: true };
      return [
        ...(place < SHOWN_CLASSES ? [free] : []),
        { id: `${name} used`, value: (row) => sum(row)?.used ?? null },
        { id: `${name} capacity`, value: (row) => sum(row)?.capacity ?? null },
      ];
    }),
    { id: "providers", title: "Providers", kind: "number", value: ({ host }) => host.providers.length, isNotSaved: true },
  ];
  return <Table label="Hosts" name="hosts" columns={columns} rows={rows} keyOf={({ block, host }) => block.id + host.root.uuid} />;
}

const SHOWN_CLASSES = 4;

interface Listed {
  block: Block;
  host: Host;
}

/** A host, whether it is disabled, and when it changed if it just has. */
function HostCell({ host, at, isDisabled }: { host: Host; at: Date | undefined; isDisabled: boolean }) {
  return (
    <>
      <a href={address("host", host.root.uuid)}>
        <Name text={host.root.name} />
      </a>
      {isDisabled && <span class="dim"> disabled</span>}
      {at && <span class="dim"> changed at {at.toLocaleTimeString()}</span>}
    </>
  );
}
