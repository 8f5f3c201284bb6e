// Consumers: who has how much, by project, type or age, and where.

import { useMemo } from "preact/hooks";
import { get } from "../api.ts";
import { add, listConsumers, type Consumer, type Fleet } from "../fleet.ts";
import { nameOf, names } from "../name.ts";
import { address, change, type Place } from "../route.ts";
import { useSource } from "../source.ts";
import { refresh, useFleet, useTimes } from "../store.ts";
import { age, count, natural, plural, short } from "../unit.ts";
import { Export } from "./export.tsx";
import { HistoryOf } from "./history.tsx";
import { Until, useLeases } from "./lease.tsx";
import { Amount, Copy, Failed, Field, Id, Length, Loading, Name, Project, Select, usePage } from "./part.tsx";
import { Old, useReading } from "./reading.tsx";

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
  const [most, more] = usePage(12, by);
  const largest = groups[0]?.[1].amount ?? 0;
  return (
    <>
      <div class="wide" tabIndex={0} role="region" aria-label={`By ${by}`}>
        <table>
          <thead>
            <tr>
              <th>{by === "project" ? "Project" : by === "type" ? "Type" : "Age"}</th>
              <th class="number">{name}</th>
              <td class="bar-column" />
              <th class="number">Consumers</th>
              <th class="number">Hosts</th>
            </tr>
          </thead>
          <tbody>
            {groups.slice(0, most).map(([label, group]) => (
              <tr key={label} class={label === chosen ? "chosen" : ""}>
                <td class="name">
                  <a href={address("consumers", "", { by, of: name, in: label })} aria-current={label === chosen}>
                    <Label by={by} text={label} />
                  </a>
                </td>
                <td class="number">
                  <Amount name={name} value={group.amount} />
                </td>
                <td>
                  <Length part={group.amount} whole={largest} />
                </td>
                <td class="number">{count(group.consumers)}</td>
                <td class="number">{count(group.hosts.size)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {more(groups.length)}
      <Export
        name={`by-${by}`}
        list={() => ({
          columns: [by, "name", name, "consumers", "hosts"],
          rows: groups.map(([label, { amount, consumers, hosts }]) => [
            label,
            by === "project" ? nameOf("projects", label) || null : null,
            amount,
            consumers,
            hosts.size,
          ]),
        })}
      />
    </>
  );
}

interface RowsOf {
  consumers: Consumer[];
  name: string;
  now: Date;
  pageKey: string;
}

function Rows({ consumers, name, now, pageKey }: RowsOf) {
  const [most, more] = usePage(100, pageKey);
  return (
    <>
      <div class="wide" tabIndex={0} role="region" aria-label="Consumers">
        <table>
          <thead>
            <tr>
              <th>Consumer</th>
              <th class="number">{name}</th>
              <th>Type</th>
              <th>Project</th>
              <th class="number">Age</th>
              <th>Where</th>
            </tr>
          </thead>
          <tbody>
            {consumers.slice(0, most).map((consumer) => (
              <tr key={consumer.uuid}>
                <td>
                  <a class="mono" href={address("consumers", consumer.uuid)}>
                    {consumer.uuid}
                  </a>
                </td>
                <td class="number">
                  <Amount name={name} value={has(consumer, name)} />
                </td>
                <td>{consumer.type || "unknown"}</td>
                <td class="name">
                  <Project id={consumer.project} />
                </td>
                <td class="number" title={consumer.created?.toISOString()}>
                  {consumer.created ? age(consumer.created, now) : "–"}
                </td>
                <td class="name">
                  <Where consumer={consumer} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {more(consumers.length)}
      <Export
        name="consumers"
        list={() => ({
          columns: ["consumer", name, "type", "project", "project_name", "user", "created", "hosts"],
          rows: consumers.map((each) => [
            each.uuid,
            has(each, name),
            each.type,
            each.project,
            nameOf("projects", each.project) || null,
            each.user,
            each.created?.toISOString() ?? null,
            [...each.hosts].map(({ root }) => root.name).join(" "),
          ]),
        })}
      />
    </>
  );
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
      <div class="wide" tabIndex={0} role="region" aria-label="Allocations">
        <table>
          <thead>
            <tr>
              <th>Provider</th>
              {[...total.keys()].map((name) => (
                <th key={name} class="number">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map(([provider, { resources }]) => (
              <tr key={provider}>
                <td class="name">
                  <a href={address("host", provider)}>
                    <Name text={fleet?.providers.get(provider)?.name ?? provider} />
                  </a>
                </td>
                {[...total.keys()].map((name) => (
                  <td key={name} class="number">
                    {name in resources ? <Amount name={name} value={resources[name]!} /> : "–"}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
          {rows.length > 1 && (
            <tfoot>
              <tr>
                <th>In all</th>
                {[...total].map(([name, value]) => (
                  <td key={name} class="number">
                    <Amount name={name} value={value} />
                  </td>
                ))}
              </tr>
            </tfoot>
          )}
        </table>
      </div>
      <Export
        name="allocations"
        list={() => ({
          columns: ["provider", "name", ...total.keys()],
          rows: rows.map(([provider, { resources }]) => [
            provider,
            fleet?.providers.get(provider)?.name ?? null,
            ...[...total.keys()].map((name) => resources[name] ?? null),
          ]),
        })}
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
      <p>This consumer has no allocations: it never existed, or has given everything back.</p>
      <button type="button" onClick={again}>
        Look again
      </button>{" "}
      <a href={address("consumers")}>All consumers</a>
      <HistoryOf filters={{ consumer: uuid }} />
    </section>
  );
}
