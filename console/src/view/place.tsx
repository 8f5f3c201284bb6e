// Place: put consumers on hosts that serve the question, or only say which these would be.

import { useRef, useState } from "preact/hooks";
import { ask, Failure, get, wrap } from "../api.ts";
import { bodyOf, undoOf, type Placed, type Wishes } from "../placing.ts";
import { address } from "../route.ts";
import { session } from "../session.ts";
import { useSource } from "../source.ts";
import { dashed, plural, sayAmounts } from "../unit.ts";
import { Until } from "./lease.tsx";
import { Failed, Field, Known, Name, Select } from "./part.tsx";
import { Table, type Column } from "./table.tsx";

const RULE = "placement:ledger:placements";
const PATH = "ledger/v1/placements";
const MOST = 1000;

interface Answer {
  placements: Placed[];
  unplaced: string[];
  dry_run: boolean;
}

const LEASES: [string, string][] = [
  ["", "for good"],
  ["300", "for 5 minutes"],
  ["3600", "for an hour"],
  ["86400", "for a day"],
];
const SPREADS: [string, string][] = [
  ["", "anywhere"],
  ["host", "over hosts"],
  ["aggregates", "over aggregates"],
];
const TOGETHER: [string, string][] = [
  ["", "anywhere"],
  ["host", "on one host"],
  ["aggregates", "in one aggregate"],
];

export function Place({ query }: { query: string }) {
  const { denied, who } = useSource(session);
  const [wishes, setWishes] = useState<Wishes>({
    number: "1",
    project: who?.project ?? "",
    user: "",
    type: "INSTANCE",
    atLeast: "",
    spread: "",
    atMost: "1",
    together: "",
    aggregates: "",
    prefer: "",
    lease: "",
  });
  const latest = useRef(wishes);
  latest.current = wishes;
  const [consumers, setConsumers] = useState<string[]>([]);
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [busy, setBusy] = useState(false);
  const [isUndone, setUndone] = useState(false);
  if (denied.has(RULE)) return failure ? <Failed failure={failure} /> : null;
  const wish = (changes: Partial<Wishes>) => {
    setWishes({ ...wishes, ...changes });
    setAnswer(null);
  };
  /** Send something; what fails is said. */
  const busily = async (path: string, work: () => Promise<void>, isLate = () => false) => {
    setBusy(true);
    setFailure(null);
    try {
      await work();
    } catch (error) {
      if (!isLate()) setFailure(wrap(error, path));
    }
    setBusy(false);
  };
  const place = (isDry: boolean, uuids: string[]) => {
    const body = bodyOf(query, wishes, uuids, isDry);
    if (typeof body === "string") return setFailure(new Failure(PATH, body));
    // What would be placed is of use only for what is wished for still; what was placed always is.
    const isLate = () => isDry && latest.current !== wishes;
    // A placement may have been written though its answer was lost: the same one can be sent again.
    if (isDry) setAnswer(null);
    setUndone(false);
    void busily(PATH, async () => {
      const next = await get<Answer>(PATH, { method: "POST", body });
      if (!isLate()) setAnswer(next);
    }, isLate);
  };
  const dryRun = (event: Event) => {
    event.preventDefault();
    // The same consumers are placed afterwards: sent twice, they are placed once.
    const uuids = Array.from({ length: Number(wishes.number) }, newUuid);
    setConsumers(uuids);
    place(true, uuids);
  };
  const undo = () =>
    void busily("allocations", async () => {
      await ask("allocations", { method: "POST", body: undoOf(answer!.placements, wishes) });
      setUndone(true);
    });
  const isPlaced = answer !== null && !answer.dry_run;
  return (
    <section>
      <details>
        <summary>Place it</summary>
        <Form wishes={wishes} wish={wish} busy={busy} submit={dryRun} />
        {failure && <Failed failure={failure} />}
        {answer && <Outcome answer={answer} />}
        {answer?.dry_run && answer.placements.length > 0 && (
          <p>
            <button type="button" class="main" disabled={busy} onClick={() => place(false, consumers)}>
              Place {plural(consumers.length, "consumer")}
            </button>{" "}
            <span class="dim">writes allocations; the service chooses anew, so the hosts may be others</span>
          </p>
        )}
        {isPlaced && !isUndone && (
          <p>
            <button type="button" disabled={busy} onClick={undo}>
              Undo
            </button>{" "}
            <span class="dim">gives everything back, unless a consumer has changed meanwhile</span>
          </p>
        )}
        {isUndone && <p role="status">Undone: the consumers have nothing any more.</p>}
      </details>
    </section>
  );
}

interface FormOf {
  wishes: Wishes;
  wish: (changes: Partial<Wishes>) => void;
  busy: boolean;
  submit: (event: Event) => void;
}

function Form({ wishes, wish, busy, submit }: FormOf) {
  const input = (name: keyof Wishes) => ({
    value: wishes[name],
    onInput: (event: Event) => wish({ [name]: (event.currentTarget as HTMLInputElement).value }),
  });
  const choice = (name: keyof Wishes) => ({ value: wishes[name], choose: (next: string) => wish({ [name]: next }) });
  const isByAggregate = wishes.spread === "aggregates" || wishes.together === "aggregates";
  return (
    <form class="controls" onSubmit={submit}>
      <Field label="How many consumers">
        <input type="number" min={1} max={MOST} required {...input("number")} />
      </Field>
      <Field label="At least">
        <input type="number" min={1} max={wishes.number} placeholder="all" {...input("atLeast")} />
      </Field>
      <Field label="Project of the consumers">
        <input required list="known-projects" size={34} {...input("project")} />
      </Field>
      <Known id="known-projects" kind="projects" />
      <Field label="User">
        <input required {...input("user")} />
      </Field>
      <Field label="Type">
        <input
          required
          pattern="[A-Z0-9_]+"
          value={wishes.type}
          onInput={(event) => wish({ type: event.currentTarget.value.toUpperCase() })}
        />
      </Field>
      <Select label="How long" options={LEASES} {...choice("lease")} />
      <Select label="Spread" options={SPREADS} {...choice("spread")} />
      {wishes.spread && (
        <Field label="At most on each">
          <input type="number" min={1} max={MOST} required {...input("atMost")} />
        </Field>
      )}
      <Select label="Together" options={TOGETHER} {...choice("together")} />
      {isByAggregate && (
        <Field label="Aggregates, with commas">
          <input list="known-aggregates" size={34} {...input("aggregates")} />
        </Field>
      )}
      <Field label="Prefer">
        <input
          size={34}
          placeholder="trait=NAME:2, free=VCPU:-1"
          title="trait=NAME, aggregate=NAME, host=UUID or free=CLASS, each with :WEIGHT if it is not 1; a negative weight is a dislike"
          {...input("prefer")}
        />
      </Field>
      <button type="submit" disabled={busy}>
        Dry run
      </button>
    </form>
  );
}

/** Browsers have `crypto.randomUUID` only on pages of a secure origin. */
function newUuid(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return dashed(hex);
}

function Outcome({ answer: { placements, unplaced, dry_run: isDry } }: { answer: Answer }) {
  const amounts = ({ allocations }: Placed) => {
    const sums = new Map<string, number>();
    for (const { resources } of Object.values(allocations)) {
      for (const name in resources) sums.set(name, (sums.get(name) ?? 0) + resources[name]!);
    }
    return sayAmounts(sums);
  };
  const columns: Column<Placed>[] = [
    {
      id: "consumer",
      title: "Consumer",
      kind: "mono",
      value: ({ consumer }) => consumer,
      cell: ({ consumer }) => (isDry ? consumer : <a href={address("consumers", consumer)}>{consumer}</a>),
    },
    { id: "host", value: ({ host }) => host },
    {
      id: "name",
      title: "Host",
      kind: "name",
      value: ({ name }) => name,
      cell: ({ host, name }) =>
        host && (
          <a href={address("host", host)}>
            <Name text={name ?? host} />
          </a>
        ),
    },
    { id: "takes", title: "Takes", value: amounts },
    { id: "lease_ends", ...(isDry ? {} : { title: "Lease ends" }), value: ({ expires_at: end }) => end, cell: ({ expires_at: end }) => <Until time={end} /> },
  ];
  return (
    <>
      <p role="status">
        <strong>
          {isDry ? `${plural(placements.length, "consumer")} would be placed` : `${plural(placements.length, "consumer")} placed`}
        </strong>
        {unplaced.length > 0 && `, ${unplaced.length} not: there is no room`}
      </p>
      <Table label="Placements" name="placements" columns={columns} rows={placements} keyOf={({ consumer }) => consumer} />
    </>
  );
}
