// Drain: where each consumer of a host would fit if the host were not there, one after the other. No claim is moved.

import { useEffect, useState } from "preact/hooks";
import { get, wrap, type Failure } from "../api.ts";
import { listMovers, promise, without, type Mover, type Promised } from "../drain.ts";
import { SHARING } from "../fleet.ts";
import { address, type Place } from "../route.ts";
import { store, useFleet } from "../store.ts";
import { count, percent, plural, sayAmounts, short } from "../unit.ts";
import type { Candidates, Capacity } from "../wire.ts";
import { readHost, type Shown } from "./host.tsx";
import { Failed, Loading, Name, Project } from "./part.tsx";
import { useReading } from "./reading.tsx";
import { Table, type Column } from "./table.tsx";

/** Where a consumer would go. */
interface Step extends Mover {
  number: number;
  /** The root; empty if no host serves. */
  host: string;
  /** How many hosts serve. */
  hosts: number;
}

export function DrainView({ place: { id } }: { place: Place }) {
  const { fleet } = useFleet();
  const { answer: shown, failure, again } = useReading(`ledger/v1/fleet?in_tree=${id} to drain`, (signal) => readHost(id, signal));
  const root = shown?.tree.find((provider) => provider.uuid === provider.root);
  if (failure && !shown) return <Failed failure={failure} retry={again} />;
  if (!shown || !fleet || fleet.isPartial) return <Loading what="the host" />;
  if (!root) return <p class="state">No provider has this UUID.</p>;
  return (
    <>
      <header class="heading">
        <h2 class="title">
          Drain <Name text={root.name} />
        </h2>
        <button type="button" onClick={again}>
          Plan again
        </button>
        <a href={address("host", root.uuid)}>The host</a>
      </header>
      <Plan key={shown.tree[0]!.generation} shown={shown} root={root.uuid} again={again} />
    </>
  );
}

interface PlanOf {
  shown: Shown;
  root: string;
  again: () => void;
}

function Plan({ shown, root, again }: PlanOf) {
  const [{ movers, steps, failure }, setPlan] = useState<Planned>(NOTHING);
  const { fleet } = useFleet();
  const name = (uuid: string) => fleet?.providers.get(uuid)?.name ?? short(uuid);
  useEffect(() => {
    const control = new AbortController();
    const movers = listMovers(shown.tree, shown.sharing);
    setPlan({ movers, steps: [], failure: null });
    plan(movers, root, (steps) => setPlan({ movers, steps, failure: null }), control.signal).catch(
      (error) => control.signal.aborted || setPlan({ movers, steps: [], failure: wrap(error, "ledger/v1/what-if") }),
    );
    return () => control.abort();
  }, [shown]);
  if (failure) return <Failed failure={failure} retry={again} />;
  if (!movers.length) return <p class="state">Nothing uses it: it is drained.</p>;
  const fitting = steps.filter(({ host }) => host).length;
  const isDone = steps.length === movers.length;
  const columns: Column<Step>[] = [
    { id: "number", title: "Order", kind: "number", value: ({ number }) => number },
    {
      id: "consumer",
      title: "Consumer",
      kind: "mono",
      value: ({ consumer }) => consumer,
      cell: ({ consumer }) => (
        <a href={address("consumers", consumer)} title={consumer}>
          {short(consumer)}
        </a>
      ),
    },
    { id: "type", title: "Type", value: ({ type }) => type },
    { id: "project", title: "Project", kind: "name", value: ({ project }) => project, cell: ({ project }) => <Project id={project} /> },
    { id: "takes", title: "Has", value: ({ amounts }) => sayAmounts(amounts) },
    { id: "part", title: "Of the host", kind: "number", value: ({ part }) => part, cell: ({ part }) => percent(part, 1) },
    {
      id: "to",
      title: "Would fit on",
      kind: "name",
      value: ({ host }) => (host ? name(host) : null),
      cell: ({ host, query, consumer }) =>
        host ? (
          <a href={address("host", host)}>
            <Name text={name(host)} />
          </a>
        ) : (
          <>
            <strong>no host</strong> <a href={address("ask", "", { q: query, leave: root, ignore: consumer })}>why</a>
          </>
        ),
    },
    { id: "hosts", title: "Hosts that serve", kind: "number", value: ({ hosts }) => hosts },
  ];
  return (
    <section aria-busy={!isDone}>
      <p role="status">
        <strong>
          {isDone
            ? fitting === steps.length
              ? `${plural(fitting, "consumer")} would fit elsewhere, in this order`
              : `${count(fitting)} of ${plural(steps.length, "consumer")} would fit elsewhere`
            : `Planned: ${count(steps.length)} of ${plural(movers.length, "consumer")}…`}
        </strong>
      </p>
      <p class="dim">
        The largest first, each with what those before it take. No claim is moved: the service answers what would be without this host.
        Amounts are those of the claims; the traits that a consumer needs are not part of a claim. Disabled hosts are left out.
      </p>
      <Table label="Plan" name="drain" columns={columns} rows={steps} keyOf={({ consumer }) => consumer} page={500} />
    </section>
  );
}

interface Planned {
  movers: Mover[];
  steps: Step[];
  failure: Failure | null;
}

const NOTHING: Planned = { movers: [], steps: [], failure: null };

/** Find a place for one consumer after the other, and hand over all steps after each. */
async function plan(movers: readonly Mover[], root: string, show: (steps: Step[]) => void, signal: AbortSignal): Promise<void> {
  const promised: Promised = new Map();
  const moved: string[] = [];
  const steps: Step[] = [];
  for (const mover of movers) {
    const providers = without(promised, store.value.fleet!.providers);
    const world = { without_hosts: [root], ignore_consumers: [...moved, mover.consumer], providers };
    const what = <T,>(kind: string, more: string) =>
      get<T>("ledger/v1/what-if", { method: "POST", body: { ...world, ask: kind, query: `${mover.query}&${more}` }, signal });
    const { total } = await what<Capacity>("capacity", "most=1&most_hosts=1");
    const { allocation_requests: [first], provider_summaries: summaries } = await what<Candidates>("candidates", "limit=1");
    if (first) {
      promise(promised, first.allocations);
      moved.push(mover.consumer);
    }
    const host = first ? rootOf(Object.keys(first.allocations), summaries) : "";
    steps.push({ ...mover, number: steps.length + 1, hosts: total, host });
    show([...steps]);
  }
}

/** The host of a candidate: the root of a provider that does not share. */
function rootOf(uuids: readonly string[], summaries: Candidates["provider_summaries"]): string {
  const own = uuids.find((uuid) => !summaries[uuid]?.traits.includes(SHARING)) ?? uuids[0]!;
  return summaries[own]?.root_provider_uuid ?? own;
}
