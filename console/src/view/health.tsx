// Health: what deserves attention, each with the hosts that it is about.

import { useMemo } from "preact/hooks";
import { examine, type Concern } from "../health.ts";
import { address } from "../route.ts";
import { refresh, useFleet } from "../store.ts";
import { count } from "../unit.ts";
import { Export } from "./export.tsx";
import { Failed, Loading, Name, usePage } from "./part.tsx";

export function HealthView() {
  const { fleet, failure, reading, ready } = useFleet("traits");
  const concerns = useMemo(() => (ready ? examine(fleet!) : []), [fleet, ready]);
  if (failure && !ready) return <Failed failure={failure} retry={refresh} />;
  if (!ready) return <Loading what="traits" read={reading} />;
  const some = concerns.filter(({ found }) => found.length);
  const none = concerns.filter(({ found }) => !found.length);
  return (
    <>
      {!some.length && <p class="state">Nothing deserves attention, as far as the fleet shows.</p>}
      {some.map((concern) => (
        <Found key={concern.id} concern={concern} />
      ))}
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
    rows: found.map(({ host, text }) => [host.root.uuid, host.root.name, text]),
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
              <th>Host</th>
              <th>Finding</th>
            </tr>
          </thead>
          <tbody>
            {found.slice(0, most).map(({ host, text }) => (
              <tr key={host.root.uuid}>
                <td class="name">
                  <a href={address("host", host.root.uuid)}>
                    <Name text={host.root.name} />
                  </a>
                </td>
                <td class="name">{text}</td>
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
