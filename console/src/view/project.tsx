// Project: what one project uses, which its members may see as well.

import { useEffect, useState } from "preact/hooks";
import { type Failure, get, wrap } from "../api.ts";
import { address, go, type Place } from "../route.ts";
import { session } from "../session.ts";
import { useSource } from "../source.ts";
import { count } from "../unit.ts";
import { Export } from "./export.tsx";
import { HistoryOf } from "./history.tsx";
import { Amount, Failed, Field, Loading } from "./part.tsx";

/** By consumer type: how many there are, and what they have of each class. */
type Usages = Record<string, Record<string, number>>;

export function ProjectView({ place }: { place: Place }) {
  const { who } = useSource(session);
  const project = place.id || who?.project || "";
  return (
    <>
      <form class="controls" onSubmit={(event) => event.preventDefault()}>
        <Field label="Project (UUID)">
          <input
            value={project}
            size={36}
            onChange={(event) => go(address("project", event.currentTarget.value.trim()))}
          />
        </Field>
      </form>
      {project ? (
        <>
          <Used key={project} project={project} />
          <HistoryOf filters={{ project_id: project }} />
        </>
      ) : (
        <p class="state">Which project? Its UUID is needed.</p>
      )}
    </>
  );
}

function Used({ project }: { project: string }) {
  const [usages, setUsages] = useState<Usages | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [times, setTimes] = useState(0);
  useEffect(() => {
    const control = new AbortController();
    const path = `usages?project_id=${encodeURIComponent(project)}`;
    setFailure(null);
    get<{ usages: Usages }>(path, { signal: control.signal })
      .then((answer) => setUsages(answer.usages))
      .catch((error) => control.signal.aborted || setFailure(wrap(error, path)));
    return () => control.abort();
  }, [times]);
  if (failure) return <Failed failure={failure} retry={() => setTimes(times + 1)} />;
  if (!usages) return <Loading what="the usage of the project" />;
  const types = Object.keys(usages).sort();
  if (!types.length) return <p class="state">The project uses nothing.</p>;
  const names = [...new Set(types.flatMap((type) => Object.keys(usages[type]!)))].filter((name) => name !== CONSUMERS);
  const numbers = (type: string) => [CONSUMERS, ...names].map((name) => usages[type]![name] ?? 0);
  return (
    <>
    <div class="wide" tabIndex={0} role="region" aria-label="Usage by consumer type">
      <table>
        <thead>
          <tr>
            <th>Consumer type</th>
            <th class="number">Consumers</th>
            {names.map((name) => (
              <th key={name} class="number">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {types.map((type) => (
            <tr key={type}>
              <td>{type}</td>
              <td class="number">{count(usages[type]![CONSUMERS] ?? 0)}</td>
              {names.map((name) => (
                <td key={name} class="number">
                  <Amount name={name} value={usages[type]![name] ?? 0} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
    <Export
      name="usage"
      list={() => ({ columns: ["type", "consumers", ...names], rows: types.map((type) => [type, ...numbers(type)]) })}
    />
    </>
  );
}

const CONSUMERS = "consumer_count";
