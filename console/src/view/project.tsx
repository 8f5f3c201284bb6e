// Project: what one project uses, which its members may see as well.

import { get } from "../api.ts";
import { idOf, names } from "../name.ts";
import { address, go, type Place } from "../route.ts";
import { session } from "../session.ts";
import { useSource } from "../source.ts";
import { useTimes } from "../store.ts";
import { count } from "../unit.ts";
import { Export } from "./export.tsx";
import { HistoryOf } from "./history.tsx";
import { Amount, Failed, Field, Known, Loading, Name } from "./part.tsx";
import { Old, useReading } from "./reading.tsx";

/** By consumer type: how many there are, and what they have of each class. */
type Usages = Record<string, Record<string, number>>;

export function ProjectView({ place }: { place: Place }) {
  const { who } = useSource(session);
  const project = place.id || who?.project || "";
  const name = useSource(names).projects.get(project);
  return (
    <>
      <form class="controls" onSubmit={(event) => event.preventDefault()}>
        <Field label="Project (name or UUID)">
          <input
            list="known-projects"
            value={project}
            size={36}
            onChange={(event) => go(address("project", idOf("projects", event.currentTarget.value)))}
          />
        </Field>
        <Known id="known-projects" kind="projects" />
      </form>
      {project ? (
        <>
          {name && (
            <h2 class="title">
              <Name text={name} />
            </h2>
          )}
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
  const path = `usages?project_id=${encodeURIComponent(project)}`;
  const times = useTimes();
  const { answer, moment, failure, again } = useReading(path, (signal) => get<{ usages: Usages }>(path, { signal }), times);
  if (failure && (failure.rule || !answer)) return <Failed failure={failure} retry={again} />;
  if (!answer) return <Loading what="the usage of the project" />;
  const { usages } = answer;
  const types = Object.keys(usages).sort();
  const old = failure && <Old what="the usage of the project" moment={moment!} failure={failure} again={again} />;
  if (!types.length) return old ?? <p class="state">The project uses nothing.</p>;
  const names = [...new Set(types.flatMap((type) => Object.keys(usages[type]!)))].filter((name) => name !== CONSUMERS);
  const numbers = (type: string) => [CONSUMERS, ...names].map((name) => usages[type]![name] ?? 0);
  return (
    <>
    {old}
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
