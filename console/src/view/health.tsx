// Health: what deserves attention, each with the hosts that it is about.

import { useEffect, useMemo, useState } from "preact/hooks";
import { ask, away, get } from "../api.ts";
import { audited, countBad, countOver, drifting, ending, examine, summarise, worries, type Audit, type Concern, type Declared, type Finding } from "../health.ts";
import { useMinutes } from "../live.ts";
import { isKnown, parse, total } from "../metrics.ts";
import { names } from "../name.ts";
import { address } from "../route.ts";
import { session } from "../session.ts";
import { useSource } from "../source.ts";
import { refresh, useFleet } from "../store.ts";
import { age, count, plural } from "../unit.ts";
import { useLeases } from "./lease.tsx";
import { Failed, Loading, Name } from "./part.tsx";
import { Old, useReading, type Reading } from "./reading.tsx";
import { Table, type Column } from "./table.tsx";

const HOUR = 3_600_000;

/** An answer of the service; nothing for those who may not see it. */
function useAnswer<T>(path: string, rule: string, times: unknown): Reading<T> {
  const isDenied = useSource(session).denied.has(rule);
  return useReading(path, isDenied ? null : (signal) => get<T>(path, { signal }), times);
}

/** That something could not be read at all, or not again. */
function Unread({ what, reading: { moment, failure, again } }: { what: string; reading: Reading<unknown> }) {
  if (useSource(away).since || !failure || failure.rule) return null;
  if (moment) return <Old what={`the list of ${what}`} moment={moment} failure={failure} again={again} />;
  return (
    <p class="stale" role="alert">
      <strong>Not checked: {what}.</strong> Reading failed: {failure.detail}{" "}
      <button type="button" class="small" onClick={again}>
        Try again
      </button>
    </p>
  );
}

const TREES = "placement_forest_trees";
const CORRECTIONS = "placement_forest_corrections_total";

/** That the service does not keep the providers in memory, or found them to be out of date. */
function Memory({ hosts, times }: { hosts: number; times: string }) {
  const [said, setSaid] = useState("");
  useEffect(() => {
    const control = new AbortController();
    const read = async () => {
      const text = await (await ask("metrics", { accept: "text/plain", signal: control.signal })).text();
      const reading = { at: Date.now(), samples: parse(text) };
      const corrected = total(reading, CORRECTIONS) ?? 0;
      const isEmpty = isKnown(reading, TREES) && total(reading, TREES) === 0;
      const why = corrected
        ? `${plural(corrected, "time")}, changes were found in the database that this service did not record: another one writes to it`
        : "no process has needed them yet, or the configuration does not let them be kept";
      if (isEmpty && hosts) setSaid(`The providers are not kept in memory: ${why}.`);
      else setSaid(corrected ? `The providers in memory were out of date: ${why}.` : "");
    };
    // Without metrics, nothing is known of it.
    read().catch(() => {});
    return () => control.abort();
  }, [hosts, times]);
  if (!said) return null;
  return (
    <section>
      <h2>Providers in memory</h2>
      <p>{said}</p>
    </section>
  );
}

export function HealthView() {
  const { fleet, failure, reading, ready } = useFleet("traits");
  const minute = useMinutes();
  const soon = useLeases(() => ({ before: new Date(Date.now() + HOUR).toISOString() }), "that end soon", minute);
  const drift = useAnswer<{ declared: Declared[] }>("ledger/v1/declared?drift=true", "placement:ledger:declared", minute);
  const last = useAnswer<{ audits: Audit[] }>("ledger/v1/audits", "placement:ledger:audits:list", minute);
  const [leases, declared, audits] = [soon.answer, drift.answer?.declared, last.answer?.audits];
  const known = useSource(names);
  const concerns = useMemo(() => {
    if (!ready) return [];
    const [first, ...others] = examine(fleet!);
    return [
      first!,
      ...(leases ? [ending(leases.found, new Date())] : []),
      ...(declared ? [drifting(declared)] : []),
      ...(audits?.length ? audited(audits) : []),
      ...others,
    ];
  }, [fleet, ready, leases, declared, audits, known]);
  const others = ready ? countBad(concerns) - countOver(fleet!) : worries.value.others;
  useEffect(() => worries.change({ others }), [others]);
  if (failure && !ready) return <Failed failure={failure} retry={refresh} />;
  if (!ready) return <Loading what="traits" read={reading} />;
  const some = concerns.filter(({ found }) => found.length).sort((a, b) => Number(b.isBad) - Number(a.isBad));
  const [bad, worthKnowing] = summarise(concerns);
  const none = concerns.filter(({ found }) => !found.length);
  return (
    <>
      <Unread what="leases" reading={soon} />
      <Unread what="drift from the declared file" reading={drift} />
      <Unread what="audits" reading={last} />
      {leases && !leases.isWhole && <p class="dim">More leases end within the hour than are shown.</p>}
      <p class="summary" role="status">
        <strong>{bad}</strong> {worthKnowing}
      </p>
      {some.map((concern) => (
        <Found key={concern.id} concern={concern} />
      ))}
      <Memory hosts={fleet!.hosts.length} times={minute} />
      {none.length > 0 && <p class="dim">Checked and not found: {none.map(({ title }) => title.toLowerCase()).join(", ")}.</p>}
      {audits && <Audits audits={audits} />}
    </>
  );
}

/** When claims were last compared with what lives, or how that is done. */
function Audits({ audits }: { audits: readonly Audit[] }) {
  if (!audits.length) {
    return (
      <p class="dim">
        <code>placement-audit</code> finds claims whose consumer no longer lives; with <code>--record</code> it shows them here.
      </p>
    );
  }
  return (
    <section>
      <h2>Audits</h2>
      <ul>
        {audits.map(({ name, recorded_at: at, claims, living, counts }) => {
          const sum = Object.values(counts).reduce((all, each) => all + each, 0);
          return (
            <li key={name}>
              <Name text={name} />: last run <time dateTime={at} title={at}>{age(new Date(at), new Date())} ago</time>,{" "}
              {plural(claims, "claim")} compared with {plural(living, "consumer")} that live; {sum ? `found ${count(sum)}` : "found nothing"}
            </li>
          );
        })}
      </ul>
    </section>
  );
}

const COLUMNS: Column<Finding>[] = [
  { id: "uuid", value: ({ uuid }) => uuid },
  {
    id: "name",
    title: "About",
    kind: "name",
    value: ({ name }) => name,
    cell: ({ view, uuid, name }) => (
      <a href={address(view, uuid)}>
        <Name text={name} />
      </a>
    ),
  },
  { id: "finding", title: "Finding", kind: "name", value: ({ text }) => text },
];

function Found({ concern: { id, title, meaning, isBad, found } }: { concern: Concern }) {
  return (
    <section class={isBad ? "concern bad" : "concern"}>
      <h2>
        {title} <span class="dim">{count(found.length)}</span>
      </h2>
      <p class="dim">{meaning}</p>
      <Table label={title} name={id} columns={COLUMNS} rows={found} keyOf={({ name, text }) => name + text} page={10} pageKey={id} />
    </section>
  );
}
