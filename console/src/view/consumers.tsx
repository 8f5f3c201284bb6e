// Consumers: who has how much, by project, type or age, and where.

import { useMemo } from "preact/hooks";
import { get } from "../api.ts";
import { add, listConsumers, type Consumer, type Fleet } from "../fleet.ts";
import { nameOf, names } from "../name.ts";
import { address, change, type Place } from "../route.ts";
import { useSource } from "../source.ts";
import { refresh, useFleet, useTimes } from "../store.ts";
import { count, natural, plural, short } from "../unit.ts";
import { HistoryOf } from "./history.tsx";
import { Until, useLeases } from "./lease.tsx";
import { Age, Amount, Copy, Failed, Field, Id, Length, Loading, Name, Project, Select } from "./part.tsx";
import { Old, useReading } from "./reading.tsx";
import { amountColumn, Table, type Column } from "./table.tsx";

const GROUPS: [string, string][] = [
  ["project", "project"],
  ["type", "type"],
  ["age", "age"],
];
const AGES: [number, string][] = [
  [1, "up to a day"],
  [7, "up to a week"],
  [30, "up to 30 days"],
  [365, "up to a year"],
  [Infinity, "more than a year"],
];
const DAY = 86_400_000;

export function ConsumersView({ place }: { place: Place }) {
  if (place.id) return <ConsumerView key={place.id} uuid={place.id} />;
  return <List place={place} />;
}

function ageOf({ created }: Consumer, now: Date): string {
  if (!created) return "not known";
  const days = (now.getTime() - created.getTime()) / DAY;
  return AGES.find(([most]) => days <= most)![1];
}

function groupOf(consumer: Consumer, by: string, now: Date): string {
  if (by === "type") return consumer.type || "unknown";
  return by === "age" ? ageOf(consumer, now) : consumer.project || "unknown";
}

function List({ place: { query } }: { place: Place }) {
  const { fleet, failure, reading, ready } = useFleet("consumers");
  const by = query.get("by") ?? "project";
  const chosen = query.get("in");
  const find = query.get("find") ?? "";
  const consumers = useMemo(() => (ready ? listConsumers(fleet!) : []), [fleet, ready]);
  if (failure && !ready) return <Failed failure={failure} retry={refresh} />;
  if (!ready) return <Loading what="allocations" read={reading} />;
  const name = query.get("of") ?? firstUsed(fleet!, consumers);
  const classes = fleet!.classes.map(([each]) => [each, each] as const);
  return (
    <>
      <form class="controls" onSubmit={(event) => event.preventDefault()}>
        <Select label="Group by" value={by} options={GROUPS} choose={(next) => change({ by: next, in: null })} />
        {classes.length > 0 && (
          <Select label="Most of" value={name} options={classes} choose={(next) => change({ of: next })} />
        )}
        <Field label="UUID, project or type contains">
          <input
            type="search"
            value={find}
            onInput={(event) => change({ find: event.currentTarget.value }, "replace")}
          />
        </Field>
      </form>
      {!consumers.length && (
        <p class="state">Nothing is allocated. Consumers appear when a scheduler claims resources for them.</p>
      )}
      {consumers.length > 0 && <Found {...{ consumers, by, name, chosen, find }} />}
    </>
  );
}

function firstUsed(fleet: Fleet, consumers: readonly Consumer[]): string {
  const used = consumers[0]?.resources;
  return fleet.classes.find(([name]) => used?.has(name))?.[0] ?? fleet.classes[0]?.[0] ?? "";
}

interface FoundOf {
  consumers: Consumer[];
  by: string;
  name: string;
  chosen: string | null;
  find: string;
}

function Found({ consumers, by, name, chosen, find }: FoundOf) {
  const known = useSource(names);
  const now = useMemo(() => new Date(), [consumers]);
  const matching = useMemo(() => {
    const wanted = find.toLowerCase();
    const told = (each: Consumer) => [each.uuid, each.project, nameOf("projects", each.project), each.type].join("\n").toLowerCase();
    return wanted ? consumers.filter((each) => told(each).includes(wanted)) : consumers;
  }, [consumers, find, known]);
  const listed = useMemo(() => {
    const inside = chosen === null ? matching : matching.filter((each) => groupOf(each, by, now) === chosen);
    return [...inside].sort((a, b) => has(b, name) - has(a, name) || natural(a.uuid, b.uuid));
  }, [matching, chosen, by, name, now]);
  return (
    <>
      <Groups {...{ consumers: matching, by, name, chosen, now }} />
      <h2>
        {plural(listed.length, "consumer")}
        {chosen !== null && (
          <>
            {" of "}
            <Label by={by} text={chosen} />{" "}
            <button type="button" class="small" onClick={() => change({ in: null })}>
              Show all
            </button>
          </>
        )}
      </h2>
      <Rows consumers={listed} name={name} now={now} pageKey={`${by}${chosen}${find}`} />
    </>
  );
}

function has({ resources }: Consumer, name: string): number {
  return resources.get(name) ?? 0;
}

function Label({ by, text }: { by: string; text: string }) {
  return by === "project" ? <Id id={text} kind="projects" /> : <Name text={text} />;
}

interface GroupsOf {
  consumers: Consumer[];
  by: string;
  name: string;
  chosen: string | null;
  now: Date;
}

function Groups({ consumers, by, name, chosen, now }: GroupsOf) {
  const groups = useMemo(() => {
    const found = new Map<string, { consumers: number; amount: number; hosts: Set<unknown> }>();
    for (const consumer of consumers) {
      const label = groupOf(consumer, by, now);
      const group = found.get(label) ?? { consumers: 0, amount: 0, hosts: new Set() };
      group.consumers += 1;
      group.amount += has(consumer, name);
      consumer.hosts.forEach((host) => group.hosts.add(host));
      found.set(label, group);
    }
    return [...found].sort((a, b) => b[1].amount - a[1].amount || b[1].consumers - a[1].consumers);
  }, [consumers, by, name, now]);
  const largest = groups[0]?.[1].amount ?? 0;
  const columns: Column<Grouped>[] = [
    {
      id: by,
      title: by === "project" ? "Project" : by === "type" ? "Type" : "Age",
      kind: "name",
      value: ([label]) => label,
      cell: ([label]) => (
        <a href={address("consumers", "", { by, of: name, in: label })} aria-current={label === chosen}>
          <Label by={by} text={label} />
        </a>
      ),
    },
    { id: "name", value: ([label]) => (by === "project" ? nameOf("projects", label) || null : null) },
    amountColumn(name, ([, { amount }]) => amount),
    { id: "part", title: "", cell: ([, { amount }]) => <Length part={amount} whole={largest} /> },
    { id: "consumers", title: "Consumers", kind: "number", value: ([, { consumers }]) => consumers },
    { id: "hosts", title: "Hosts", kind: "number", value: ([, { hosts }]) => hosts.size },
  ];
  return <Table label={`By ${by}`} name={`by-${by}`} columns={columns} rows={groups} keyOf={([label]) => label} page={12} pageKey={by} isChosen={([label]) => label === chosen} />;
}

type Grouped = [string, { consumers: number; amount: number; hosts: Set<unknown> }];

interface RowsOf {
  consumers: Consumer[];
  name: string;
  now: Date;
  pageKey: string;
}

function Rows({ consumers, name, now, pageKey }: RowsOf) {
  const columns: Column<Consumer>[] = [
    { id: "consumer", title: "Consumer", kind: "mono", value: ({ uuid }) => uuid, cell: ({ uuid }) => <a href={address("consumers", uuid)}>{uuid}</a> },
    amountColumn(name, (consumer) => has(consumer, name)),
    { id: "type", title: "Type", value: ({ type }) => type, cell: ({ type }) => type || "unknown" },
    { id: "project", title: "Project", kind: "name", value: ({ project }) => project, cell: ({ project }) => <Project id={project} /> },
    { id: "project_name", value: ({ project }) => nameOf("projects", project) || null },
    { id: "user", value: ({ user }) => user },
    { id: "created", title: "Age", kind: "number", value: ({ created }) => created?.toISOString() ?? null, cell: ({ created }) => <Age since={created} now={now} /> },
    { id: "hosts", title: "Where", kind: "name", value: ({ hosts }) => [...hosts].map(({ root }) => root.name).join(" "), cell: (consumer) => <Where consumer={consumer} /> },
  ];
  return <Table label="Consumers" name="consumers" columns={columns} rows={consumers} keyOf={({ uuid }) => uuid} page={100} pageKey={pageKey} />;
}

const FEW = 3;

function Where({ consumer }: { consumer: Consumer }) {
  const hosts = [...consumer.hosts];
  return (
    <>
      {hosts.slice(0, FEW).map(({ root }, place) => (
        <span key={root.uuid}>
          {place > 0 && ", "}
          <a href={address("host", root.uuid)}>
            <Name text={root.name} />
          </a>
        </span>
      ))}
      {hosts.length > FEW && ` and ${count(hosts.length - FEW)} more`}
    </>
  );
}

interface Allocated {
  allocations: Record<string, { resources: Record<string, number> }>;
  project_id?: string;
  user_id?: string;
  consumer_type?: string;
  consumer_generation?: number;
}

function ConsumerView({ uuid }: { uuid: string }) {
  const path = `allocations/${encodeURIComponent(uuid)}`;
  const { answer: found, moment, failure, again } = useReading(path, (signal) => get<Allocated>(path, { signal }), useTimes());
  const { fleet } = useFleet();
  useSource(names);
  const project = found?.project_id;
  const filters = project ? { project_id: project } : null;
  const leases = useLeases(filters && (() => filters), project ?? "", found?.consumer_generation).answer;
  const lease = leases?.found.find(({ consumer }) => consumer === uuid);
  if (failure && (failure.rule || !found)) return <Failed failure={failure} retry={again} />;
  if (!found) return <Loading what="the consumer" />;
  const rows = Object.entries(found.allocations);
  if (!rows.length) return <NoConsumer uuid={uuid} again={again} />;
  const total = new Map<string, number>();
  rows.forEach(([, { resources }]) => add(total, resources));
  const nameOfProvider = (provider: string) => fleet?.providers.get(provider)?.name ?? null;
  const columns: Column<(typeof rows)[number]>[] = [
    {
      id: "provider",
      title: "Provider",
      kind: "name",
      value: ([provider]) => provider,
      cell: ([provider]) => (
        <a href={address("host", provider)}>
          <Name text={nameOfProvider(provider) ?? provider} />
        </a>
      ),
    },
    { id: "name", value: ([provider]) => nameOfProvider(provider) },
    ...[...total.keys()].map((name) => amountColumn<(typeof rows)[number]>(name, ([, { resources }]) => resources[name])),
  ];
  return (
    <>
      {failure && <Old what="the consumer" moment={moment!} failure={failure} again={again} />}
      <h2 class="title">Consumer</h2>
      <dl class="facts">
        <dt>UUID</dt>
        <dd>
          <Copy text={uuid} label="the UUID" />
        </dd>
        <dt>Type</dt>
        <dd>{found.consumer_type ?? "unknown"}</dd>
        <dt>Project</dt>
        <dd>
          <a href={address("consumers", "", { in: found.project_id ?? "" })}>
            {nameOf("projects", found.project_id ?? "") || "all its consumers"}
          </a>{" "}
          <Copy text={found.project_id ?? ""} label="the project" />
        </dd>
        <dt>User</dt>
        <dd class="mono">
          <Name text={found.user_id ?? ""} />
        </dd>
        <dt>Generation</dt>
        <dd>{found.consumer_generation ?? "–"}</dd>
        {lease && (
          <>
            <dt>Lease</dt>
            <dd>
              ends <Until time={lease.expires_at} />, unless it is renewed or confirmed
            </dd>
          </>
        )}
      </dl>
      <h2>Where it is</h2>
      <Table
        label="Allocations"
        name="allocations"
        columns={columns}
        rows={rows}
        keyOf={([provider]) => provider}
        foot={
          rows.length > 1 && (
            <tr>
              <th>In all</th>
              {[...total].map(([name, value]) => (
                <td key={name} class="number">
                  <Amount name={name} value={value} />
                </td>
              ))}
            </tr>
          )
        }
      />
      <HistoryOf filters={{ consumer: uuid }} />
      <h2>On the command line</h2>
      <Copy text={`openstack resource provider allocation show ${uuid}`} label="the openstack command" />
    </>
  );
}

function NoConsumer({ uuid, again }: { uuid: string; again: () => void }) {
  return (
    <section class="state">
      <h2 class="title">Consumer {short(uuid)} has nothing</h2>
      <p>
        <code>{uuid}</code>
      </p>
      <p>No consumer with allocations has this UUID: it never existed, or its allocations were deleted.</p>
      <button type="button" onClick={again}>
        Look again
      </button>{" "}
      <a href={address("consumers")}>All consumers</a>
      <HistoryOf filters={{ consumer: uuid }} />
    </section>
  );
}
