// Health: what deserves attention, each with the hosts that it is about.

import { useEffect, useMemo, useState } from "preact/hooks";
import { ask, get } from "../api.ts";
import { drifting, ending, examine, type Concern, type Declared } from "../health.ts";
import { isKnown, parse, total } from "../metrics.ts";
import { address } from "../route.ts";
import { session } from "../session.ts";
import { useSource } from "../source.ts";
import { refresh, useFleet } from "../store.ts";
import { count, plural } from "../unit.ts";
import { Export } from "./export.tsx";
import { useLeases } from "./lease.tsx";
import { Failed, Loading, Name, usePage } from "./part.tsx";

const HOUR = 3_600_000;

/** What was declared and is otherwise now; null if the service does not say. */
function useDeclared(times: unknown): Declared[] | null {
  const [declared, setDeclared] = useState<Declared[] | null>(null);
  const isDenied = useSource(session).denied.has("placement:ledger:declared");
  useEffect(() => {
    const control = new AbortController();
    if (isDenied) return () => {};
    get<{ declared: Declared[] }>("ledger/v1/declared?drift=true", { signal: control.signal }).then(
      (answer) => setDeclared(answer.declared),
      () => control.signal.aborted || setDeclared(null),
    );
    return () => control.abort();
  }, [times, isDenied]);
  return declared;
}

const TREES = "placement_forest_trees";
const CORRECTIONS = "placement_forest_corrections_total";

/** That the service does not keep the providers in memory, or found them to be out of date. */
function Memory({ hosts }: { hosts: number }) {
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
      else if (corrected) setSaid(`The providers in memory were out of date: ${why}.`);
    };
    // Without metrics, nothing is known of it.
    read().catch(() => {});
    return () => control.abort();
  }, [hosts]);
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
  const minute = Math.floor((fleet?.moment.getTime() ?? 0) / 60_000);
  const leases = useLeases(useMemo(() => ({ before: new Date(Date.now() + HOUR).toISOString() }), [minute]), minute);
  const declared = useDeclared(minute);
  const concerns = useMemo(() => {
    if (!ready) return [];
    const [first, ...others] = examine(fleet!);
    return [
      first!,
      ...(leases ? [ending(leases.found, new Date())] : []),
      ...(declared ? [drifting(declared)] : []),
      ...others,
    ];
  }, [fleet, ready, leases, declared]);
  if (failure && !ready) return <Failed failure={failure} retry={refresh} />;
  if (!ready) return <Loading what="traits" read={reading} />;
  const some = concerns.filter(({ found }) => found.length);
  const none = concerns.filter(({ found }) => !found.length);
  return (
    <>
      {leases && !leases.isWhole && <p class="dim">More leases end within the hour than are shown.</p>}
      {!some.length && <p class="state">Nothing deserves attention, as far as the fleet shows.</p>}
      {some.map((concern) => (
        <Found key={concern.id} concern={concern} />
      ))}
      <Memory hosts={fleet!.hosts.length} />
      {none.length > 0 && <p class="dim">Looked for and not found: {none.map(({ title }) => title.toLowerCase()).join(", ")}.</p>}
      <p class="dim">
        Allocations without a consumer or a server are found by <code>placement-audit</code>.
      </p>
    </>
  );
}

function Found({ concern: { id, title, meaning, found } }: { concern: Concern }) {
  const [most, more] = usePage(10, id);
  const list = () => ({
    columns: ["uuid", "name", "finding"],
    rows: found.map(({ uuid, name, text }) => [uuid, name, text]),
  });
  return (
    <section>
      <h2>
        {title} <span class="dim">{count(found.length)}</span>
      </h2>
      <p class="dim">{meaning}</p>
      <div class="wide" tabIndex={0} role="region" aria-label={title}>
        <table>
          <thead>
            <tr>
              <th>{found[0]!.view === "host" ? "Host" : "Consumer"}</th>
              <th>Finding</th>
            </tr>
          </thead>
          <tbody>
            {found.slice(0, most).map(({ view, uuid, name, text }) => (
              <tr key={name + text}>
                <td class="name">
                  <a href={address(view, uuid)}>
                    <Name text={name} />
                  </a>
                </td>
                <td class="name">
                  <Name text={text} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {more(found.length)}
      <Export name={id} list={list} />
    </section>
  );
}
