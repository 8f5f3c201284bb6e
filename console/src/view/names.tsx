// Names: traits and resource classes, with how many providers have them.

import { useMemo } from "preact/hooks";
import { get } from "../api.ts";
import type { Fleet } from "../fleet.ts";
import { useMinutes } from "../live.ts";
import { address, change, type Place } from "../route.ts";
import { refresh, useFleet } from "../store.ts";
import { plural } from "../unit.ts";
import { Failed, Field, Length, Loading, Name, Select } from "./part.tsx";
import { Old, useReading } from "./reading.tsx";
import { Table, type Column } from "./table.tsx";

const KINDS: [string, string][] = [
  ["traits", "traits"],
  ["classes", "resource classes"],
];
const SHOW: [string, string][] = [
  ["used", "in use"],
  ["unused", "custom, and nothing uses them"],
  ["custom", "custom"],
  ["all", "all"],
];

interface Known {
  traits: string[];
  classes: string[];
}

async function read(signal: AbortSignal): Promise<Known> {
  const [traits, classes] = await Promise.all([
    get<{ traits: string[] }>("traits", { signal }),
    get<{ resource_classes: { name: string }[] }>("resource_classes", { signal }),
  ]);
  return { traits: traits.traits, classes: classes.resource_classes.map(({ name }) => name) };
}

export function NamesView({ place: { query } }: { place: Place }) {
  const state = useFleet("traits");
  const { answer: known, moment, failure, again } = useReading("traits", state.fleet && read, useMinutes());
  if (failure && !known) return <Failed failure={failure} retry={again} />;
  if (state.failure && !state.ready) return <Failed failure={state.failure} retry={refresh} />;
  if (!known || !state.ready) return <Loading what="traits" read={state.reading} />;
  const kind = query.get("kind") === "classes" ? "classes" : "traits";
  const show = query.get("show") ?? "used";
  const find = query.get("find") ?? "";
  return (
    <>
      {failure && <Old what="the list of names" moment={moment!} failure={failure} again={again} />}
      <form class="controls" onSubmit={(event) => event.preventDefault()}>
        <Select label="What" value={kind} options={KINDS} choose={(next) => change({ kind: next })} />
        <Select label="Show" value={show} options={SHOW} choose={(next) => change({ show: next })} />
        <Field label="Name contains">
          <input
            type="search"
            value={find}
            onInput={(event) => change({ find: event.currentTarget.value }, "replace")}
          />
        </Field>
      </form>
      <List names={known[kind]} fleet={state.fleet!} {...{ kind, show, find }} />
    </>
  );
}

interface ListOf {
  names: string[];
  fleet: Fleet;
  kind: "traits" | "classes";
  show: string;
  find: string;
}

function List({ names, fleet, kind, show, find }: ListOf) {
  const numbers = useMemo(() => {
    const found = new Map<string, number>();
    for (const { traits, inventories } of fleet.providers.values()) {
      const here = kind === "traits" ? traits : Object.keys(inventories);
      for (const name of here) found.set(name, (found.get(name) ?? 0) + 1);
    }
    return found;
  }, [fleet, kind]);
  const rows = useMemo(() => {
    const wanted = find.toUpperCase();
    const number = (name: string) => numbers.get(name) ?? 0;
    const isShown = (name: string) => {
      if (show === "used") return number(name) > 0;
      if (show === "all") return true;
      return name.startsWith("CUSTOM_") && (show === "custom" || number(name) === 0);
    };
    return names
      .filter((name) => isShown(name) && name.includes(wanted))
      .map((name) => [name, number(name)] as const)
      .sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  }, [names, numbers, show, find]);
  const largest = rows[0]?.[1] ?? 0;
  const what = kind === "traits" ? "trait" : "resource class";
  const columns: Column<(typeof rows)[number]>[] = [
    {
      id: "name",
      title: kind === "traits" ? "Trait" : "Resource class",
      kind: "name",
      value: ([name]) => name,
      cell: ([name]) => (
        <a href={address("fleet", "", kind === "traits" ? { by: "trait", of: name } : { by: "used", of: name })}>
          <Name text={name} />
        </a>
      ),
    },
    { id: "providers", title: "Providers", kind: "number", value: ([, number]) => number },
    { id: "part", title: "", cell: ([, number]) => <Length part={number} whole={largest} /> },
  ];
  if (!rows.length) {
    return <p class="state">{show === "unused" ? `Every custom ${what} is in use.` : `No ${what} matches.`}</p>;
  }
  return (
    <>
      <p class="caption">
        <strong>{plural(rows.length, what, kind === "traits" ? "traits" : "resource classes")}</strong>
      </p>
      <Table label="Names" name={kind} columns={columns} rows={rows} keyOf={([name]) => name} pageKey={kind + show + find} />
    </>
  );
}
