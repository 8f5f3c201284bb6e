// Project: what one project uses, which its members may see as well.

import { get } from "../api.ts";
import { idOf, names } from "../name.ts";
import { address, go, type Place } from "../route.ts";
import { session } from "../session.ts";
import { useSource } from "../source.ts";
import { useTimes } from "../store.ts";
import { HistoryOf } from "./history.tsx";
import { Failed, Field, Known, Loading, Name } from "./part.tsx";
import { Old, useReading } from "./reading.tsx";
import { amountColumn, Table, type Column } from "./table.tsx";

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
  const columns: Column<string>[] = [
    { id: "type", title: "Consumer type", value: (type) => type },
    { id: "consumers", title: "Consumers", kind: "number", value: (type) => usages[type]![CONSUMERS] ?? 0 },
    ...names.map((name) => amountColumn<string>(name, (type) => usages[type]![name] ?? 0)),
  ];
  return (
    <>
    {old}
    <Table label="Usage by consumer type" name="usage" columns={columns} rows={types} keyOf={(type) => type} />
    </>
  );
}

const CONSUMERS = "consumer_count";
