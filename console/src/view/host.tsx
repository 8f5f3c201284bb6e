// Host: its tree as nested boxes, the providers that share with it, and its consumers.

import { useEffect, useMemo, useState } from "preact/hooks";
import { get } from "../api.ts";
import { add, capacity, SHARING, type Inventory, type Provider } from "../fleet.ts";
import { DISABLED } from "../health.ts";
import { nameOf, names } from "../name.ts";
import { ROOT } from "../root.ts";
import { address, recalled } from "../route.ts";
import { amount, count, exact, natural, percent, plural, short, usedOf } from "../unit.ts";
import { useSource } from "../source.ts";
import { useFleet } from "../store.ts";
import { readProvider } from "../wire.ts";
import { HistoryOf } from "./history.tsx";
import { Until, useLeases } from "./lease.tsx";
import { Age, Copy, Failed, Id, Loading, Name, Project } from "./part.tsx";
import { Old, useReading } from "./reading.tsx";
import { amountColumn, Table, type Column } from "./table.tsx";

export interface Shown {
  tree: Provider[];
  sharing: Provider[];
}

interface Listed {
  providers: unknown[];
}

/** Read a tree, and what shares with it. */
export async function readHost(uuid: string, signal: AbortSignal): Promise<Shown> {
  const list = async (filters: string) =>
    (await get<Listed>(`ledger/v1/fleet?${filters}&fields=${FIELDS}`, { signal })).providers.map((each) => readProvider(each));
  const tree = await list(`in_tree=${encodeURIComponent(uuid)}`);
  const inside = new Set(tree.map((provider) => provider.uuid));
  const aggregates = [...new Set(tree.flatMap((provider) => provider.aggregates))];
  if (!aggregates.length) return { tree, sharing: [] };
  const near = await list(`member_of=in:${aggregates.join()}&required=${SHARING}`);
  return { tree, sharing: near.filter((provider) => !inside.has(provider.uuid)) };
}

const FIELDS = "inventories,usages,traits,aggregates,consumers,generation,parent";

export function HostView({ uuid }: { uuid: string }) {
  const [roots, setRoots] = useState([uuid]);
  const { changed } = useFleet();
  // The fleet is followed: what has changed is read again.
  const seen = roots.flatMap((root) => changed.get(root)?.getTime() ?? []).join();
  const { answer: shown, moment, failure, again } = useReading(`ledger/v1/fleet?in_tree=${uuid}`, (signal) => readHost(uuid, signal), seen);
  useEffect(() => {
    const near = shown ? [...shown.tree, ...shown.sharing] : [];
    setRoots([...new Set([uuid, ...near.map((provider) => provider.root)])]);
  }, [shown, uuid]);
  if (!shown) return failure ? <Failed failure={failure} retry={again} /> : <Loading what="the host" />;
  const root = shown.tree.find((provider) => provider.uuid === provider.root);
  if (!root) return <Unknown uuid={uuid} again={again} />;
  return (
    <>
      {failure && <Old what="the host" moment={moment!} failure={failure} again={again} />}
      <Tree {...shown} root={root} chosen={uuid} again={again} />
    </>
  );
}

function Unknown({ uuid, again }: { uuid: string; again: () => void }) {
  return (
    <section class="state">
      <h2 class="title">No provider has this UUID</h2>
      <p>
        <code>{uuid}</code>
      </p>
      <p>It may have been deleted since the link to it was made.</p>
      <button type="button" onClick={again}>
        Look again
      </button>{" "}
      <a href={address("consumers", uuid)}>Look among the consumers</a> <a href={address("fleet")}>Go to the fleet</a>
    </section>
  );
}

interface TreeOf extends Shown {
  root: Provider;
  chosen: string;
  again: () => void;
}

function Tree({ tree, sharing, root, chosen, again }: TreeOf) {
  const children = useMemo(() => {
    const found = new Map<string, Provider[]>();
    for (const provider of tree) {
      if (!provider.parent) continue;
      const siblings = found.get(provider.parent);
      if (siblings) siblings.push(provider);
      else found.set(provider.parent, [provider]);
    }
    found.forEach((siblings) => siblings.sort((a, b) => natural(a.name, b.name)));
    return found;
  }, [tree]);
  return (
    <>
      <header class="heading">
        <h2 class="title">
          <Name text={root.name} />
        </h2>
        <button type="button" onClick={again}>
          Read again
        </button>
        <a href={address("ask", "", { host: root.uuid, q: recalled() })}>Explain this host</a>
        <a href={address("drain", root.uuid)}>Drain this host</a>
      </header>
      {root.traits.includes(DISABLED) && (
        <p class="flag">
          <strong>Disabled:</strong> it has <code>{DISABLED}</code>; schedulers put nothing new here.
        </p>
      )}
      <dl class="facts">
        <dt>UUID</dt>
        <dd>
          <Copy text={root.uuid} label="the UUID" />
        </dd>
        <dt>Tree</dt>
        <dd>{plural(tree.length, "provider")}</dd>
        <dt>Aggregates</dt>
        <dd>
          {root.aggregates.length ? root.aggregates.map((each) => <AggregateLink key={each} uuid={each} />) : "none"}
        </dd>
      </dl>
      <div class={sharing.length ? "beside" : ""}>
        <Box provider={root} children_={children} chosen={chosen} />
        {sharing.length > 0 && (
          <section class="sharing">
            <h2>Shared with it</h2>
            {sharing.map((provider) => (
              <div key={provider.uuid}>
                <p class="dim">
                  by {provider.aggregates.filter((each) => isIn(tree, each)).map((each) => <AggregateLink key={each} uuid={each} />)}
                </p>
                <Box provider={provider} children_={NOTHING} chosen={chosen} link />
              </div>
            ))}
          </section>
        )}
      </div>
      <Users tree={tree} />
      <HistoryOf filters={{ root: root.uuid }} />
      <section>
        <h2>On the command line</h2>
        <Commands root={root} />
      </section>
    </>
  );
}

const NOTHING: ReadonlyMap<string, Provider[]> = new Map();

function isIn(tree: readonly Provider[], aggregate: string): boolean {
  return tree.some(({ aggregates }) => aggregates.includes(aggregate));
}

function Aggregate({ id }: { id: string }) {
  return useSource(names).aggregates.has(id) ? <Id id={id} kind="aggregates" /> : <>{short(id)}</>;
}

function AggregateLink({ uuid }: { uuid: string }) {
  return (
    <a class="token" href={address("fleet", "", { by: "aggregate", of: uuid, bins: "1" })} title={uuid}>
      <Aggregate id={uuid} />
    </a>
  );
}

interface BoxOf {
  provider: Provider;
  children_: ReadonlyMap<string, Provider[]>;
  chosen: string;
  link?: boolean;
}

function Box({ provider, children_, chosen, link = false }: BoxOf) {
  const inner = children_.get(provider.uuid) ?? [];
  const inventories = Object.entries(provider.inventories);
  const marked = provider.uuid === chosen && provider.uuid !== provider.root;
  return (
    <section class={marked ? "box chosen" : "box"} aria-label={provider.name}>
      <header>
        <strong>
          {link ? (
            <a href={address("host", provider.uuid)}>
              <Name text={provider.name} />
            </a>
          ) : (
            <Name text={provider.name} />
          )}
        </strong>
        <span class="dim">
          generation {count(provider.generation)} <Copy text={provider.uuid} label="UUID" shown={false} />
        </span>
      </header>
      {inventories.map(([name, inventory]) => (
        <Stock key={name} name={name} inventory={inventory} used={provider.usages[name] ?? 0} />
      ))}
      {!inventories.length && !inner.length && <p class="dim">no inventory</p>}
      <Traits traits={provider.traits} />
      {inner.length > 0 && (
        <div class="inner">
          {inner.map((child) => (
            <Box key={child.uuid} provider={child} children_={children_} chosen={chosen} />
          ))}
        </div>
      )}
    </section>
  );
}

function Stock({ name, inventory, used }: { name: string; inventory: Inventory; used: number }) {
  const { total, reserved, allocation_ratio: ratio } = inventory;
  const most = capacity(inventory);
  const whole = Math.max(1, total * ratio, used + reserved * ratio);
  const width = (value: number) => ({ width: `${(100 * Math.max(0, value)) / whole}%` });
  return (
    <div class="stock">
      <div class="stock-line">
        <span>{name}</span>
        <span>
          <span title={`${exact(name, used)} of ${count(most)}`}>{usedOf(name, used, most, total)}</span>
          {most > 0 && <span class="stock-part"> {percent(used, most)}</span>}
        </span>
      </div>
      <div class={used > most ? "bar stock-bar bar-over" : "bar stock-bar"} role="img" aria-label={`${name}: ${most > 0 ? percent(used, most) : amount(name, used)} used`} title={exact(name, used)}>
        <span class="bar-used" style={width(used)} />
        <span class="bar-free" style={width(most - used)} />
        <span class="bar-reserved" style={width(reserved * ratio)} />
      </div>
      <div class="dim">
        {used > most ? <strong>{amount(name, used - most)} over capacity</strong> : `${amount(name, most - used)} free`}
        {most !== total && ` · total ${amount(name, total)} · reserved ${amount(name, reserved)} · ratio ${count(ratio)}`}
        {limits(name, inventory)}
      </div>
    </div>
  );
}

function limits(name: string, { min_unit: least, max_unit: most, step_size: step, total }: Inventory): string {
  const said = [
    least > 1 && `from ${amount(name, least)}`,
    most < total && `at most ${amount(name, most)} at once`,
    step > 1 && `in steps of ${amount(name, step)}`,
  ].filter(Boolean);
  return said.length ? ` · ${said.join(", ")}` : "";
}

const FEW = 6;

function Traits({ traits }: { traits: readonly string[] }) {
  if (!traits.length) return null;
  const list = (
    <ul class="tokens">
      {[...traits].sort().map((name) => (
        <li key={name}>
          <a class="token" href={address("fleet", "", { by: "trait", of: name })}>
            <Name text={name} />
          </a>
        </li>
      ))}
    </ul>
  );
  if (traits.length <= FEW) return list;
  return (
    <details>
      <summary>{plural(traits.length, "trait")}</summary>
      {list}
    </details>
  );
}

interface User {
  consumer: string;
  project: string;
  type: string;
  created: string;
  resources: Map<string, number>;
}

function listUsers(tree: readonly Provider[], first: string): User[] {
  const found = new Map<string, User>();
  for (const { allocations } of tree) {
    for (const { consumer, project, type, created, resources } of allocations) {
      let user = found.get(consumer);
      if (!user) found.set(consumer, (user = { consumer, project, type, created, resources: new Map() }));
      add(user.resources, resources);
    }
  }
  const value = ({ resources }: User) => resources.get(first) ?? 0;
  return [...found.values()].sort((a, b) => value(b) - value(a) || natural(a.consumer, b.consumer));
}

function Users({ tree }: { tree: readonly Provider[] }) {
  const names = [...new Set(tree.flatMap(({ usages }) => Object.keys(usages).filter((name) => usages[name])))];
  const users = useMemo(() => listUsers(tree, names[0] ?? ""), [tree]);
  const leases = useLeases(() => ({}), "", tree).answer;
  const ends = new Map(leases?.found.map(({ consumer, expires_at: end }) => [consumer, end]));
  const end = ({ consumer }: User) => ends.get(consumer) ?? null;
  const isLeased = users.some(end);
  const now = new Date();
  const columns: Column<User>[] = [
    { id: "consumer", title: "Consumer", kind: "mono", value: ({ consumer }) => consumer, cell: ({ consumer }) => <a href={address("consumers", consumer)}>{consumer}</a> },
    { id: "type", title: "Type", value: ({ type }) => type },
    { id: "project", title: "Project", kind: "name", value: ({ project }) => project, cell: ({ project }) => <Project id={project} /> },
    { id: "project_name", value: ({ project }) => nameOf("projects", project) || null },
    { id: "created", title: "Age", kind: "number", value: ({ created }) => created, cell: ({ created }) => <Age since={created} now={now} /> },
    { id: "lease_ends", ...(isLeased ? { title: "Lease ends" } : {}), value: end, cell: (user) => <Until time={end(user)} /> },
    ...names.map((name) => amountColumn<User>(name, ({ resources }) => resources.get(name))),
  ];
  return (
    <section>
      <h2>Consumers</h2>
      {!users.length && <p class="dim">Nothing uses it.</p>}
      {users.length > 0 && <Table label="Consumers" name="consumers" columns={columns} rows={users} keyOf={({ consumer }) => consumer} page={50} pageKey={tree[0]!.uuid} />}
      {leases && !leases.isWhole && <p class="dim">Only the leases that end first were read: others are not shown here.</p>}
    </section>
  );
}

function Commands({ root }: { root: Provider }) {
  const filter = `in_tree=${root.uuid}`;
  return (
    <ul class="commands">
      <li>
        <Copy text={`openstack resource provider show --allocations ${root.uuid}`} label="the openstack command" />
      </li>
      <li>
        <Copy text={`openstack resource provider inventory list ${root.uuid}`} label="the openstack command for inventories" />
      </li>
      <li>
        <Copy text={`curl -H "X-Auth-Token: $OS_TOKEN" '${ROOT.href}ledger/v1/fleet?${filter}'`} label="the curl command" />
      </li>
    </ul>
  );
}
