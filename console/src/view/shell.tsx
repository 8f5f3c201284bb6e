// The frame around the views: navigation, search, help, the age of the data.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, USAGES } from "../api.ts";
import { inNames } from "../find.ts";
import { keys, turnKeys } from "../keys.ts";
import { follow, live, setPaused, unfollow } from "../live.ts";
import { idOf, names } from "../name.ts";
import { goOn, stop } from "../poll.ts";
import { address, go, leftBehind, usePlace, type Place } from "../route.ts";
import { begin, isOpen, session, signOut } from "../session.ts";
import { useSource } from "../source.ts";
import { forget, readAgain, readNames, store, unmark } from "../store.ts";
import { dashed, isUuid, plural } from "../unit.ts";
import { AskView } from "./ask.tsx";
import { Boundary } from "./boundary.tsx";
import { ConsumersView } from "./consumers.tsx";
import { FleetView } from "./fleet.tsx";
import { HealthView } from "./health.tsx";
import { HistoryView, RULE as HISTORY } from "./history.tsx";
import { HostView } from "./host.tsx";
import { NamesView } from "./names.tsx";
import { NowView } from "./now.tsx";
import { ProjectView } from "./project.tsx";
import { Failed, Loading } from "./part.tsx";
import { Old } from "./reading.tsx";
import { SignIn } from "./signin.tsx";

/** Name, label, key, and the policy rule without which there is nothing to see. */
const VIEWS: [string, string, string, string][] = [
  ["fleet", "Fleet", "f", "placement:ledger:fleet"],
  ["ask", "Ask", "a", "placement:ledger:explanation"],
  ["health", "Health", "h", "placement:ledger:fleet"],
  ["history", "History", "i", HISTORY],
  ["consumers", "Consumers", "c", "placement:ledger:fleet"],
  ["project", "Project", "p", USAGES],
  ["names", "Names", "n", "placement:traits:list"],
  ["now", "Now", "w", ""],
];

/** What tells whether a user may see a view, asked once the user may not see the fleet. */
const PROBES = ["ledger/v1/explanation?resources=VCPU:1", "traits?name=in:VCPU", "ledger/v1/history?limit=1"];

/** The views that the user may see, as far as that is known. */
function useViews() {
  const { denied } = useSource(session);
  const isLimited = denied.has("placement:ledger:fleet");
  useEffect(() => {
    // A refusal is remembered; anything else shows that it is allowed.
    if (isLimited) PROBES.forEach((path) => void ask(path).catch(() => {}));
  }, [isLimited]);
  return VIEWS.filter(([, , , rule]) => !denied.has(rule));
}

export function Shell() {
  const state = useSource(session);
  useEffect(() => void begin(), []);
  useEffect(() => {
    // The next user to sign in may not see the same.
    if (isOpen(state)) return;
    forget();
    unfollow();
    stop();
  }, [isOpen(state)]);
  if (state.failure) {
    return (
      <main>
        <Failed failure={state.failure} retry={() => void begin()} />
      </main>
    );
  }
  if (!state.door) {
    return (
      <main>
        <Loading what="how to sign in" />
      </main>
    );
  }
  return isOpen(state) ? <Inside /> : <SignIn />;
}

function Inside() {
  const place = usePlace();
  const main = useRef<HTMLElement>(null);
  const view = title(place);
  const isLater = useRef(false);
  useEffect(goOn, []);
  useEffect(() => void readNames(), []);
  useEffect(() => {
    document.title = `${view} · Placement`;
    const link = [...main.current!.querySelectorAll("a")].find((each) => each.getAttribute("href") === leftBehind());
    if (link) link.focus();
    else if (!main.current!.contains(document.activeElement)) {
      scrollTo(0, 0);
      // What had the focus is gone with the view it was in.
      if (document.activeElement === document.body && isLater.current) main.current!.focus({ preventScroll: true });
    }
    isLater.current = true;
  }, [view, place.id]);
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          main.current?.focus();
        }}
      >
        Skip to the content
      </a>
      <Header place={place} />
      <main ref={main} tabIndex={-1} id="main">
        <h1 class="hidden">{view}</h1>
        <Stale />
        <Boundary place={place}>
          <View place={place} />
        </Boundary>
      </main>
    </>
  );
}

function title({ view, id }: Place): string {
  if (view === "host") return "Host";
  if (view === "consumers" && id) return "Consumer";
  return VIEWS.find(([name]) => name === view)?.[1] ?? "Nowhere";
}

function View({ place }: { place: Place }): ComponentChildren {
  switch (place.view) {
    case "fleet":
      return <FleetView place={place} />;
    case "host":
      return <HostView uuid={place.id} />;
    case "ask":
      return <AskView place={place} />;
    case "consumers":
      return <ConsumersView place={place} />;
    case "history":
      return <HistoryView place={place} />;
    case "health":
      return <HealthView />;
    case "project":
      return <ProjectView place={place} />;
    case "names":
      return <NamesView place={place} />;
    case "now":
      return <NowView />;
    default:
      return (
        <section class="state">
          <h2 class="title">There is no such view</h2>
          <a href={address("fleet")}>Go to the fleet</a>
        </section>
      );
  }
}

function Header({ place }: { place: Place }) {
  const search = useRef<HTMLInputElement>(null);
  const help = useRef<HTMLDialogElement>(null);
  const { door } = useSource(session);
  const { areOn } = useSource(keys);
  useEffect(() => {
    if (!areOn) return;
    const press = (event: KeyboardEvent) => {
      const typing = (event.target as Element).closest("input, select, textarea, dialog");
      if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
      const view = VIEWS.find(([, , key]) => key === event.key);
      if (event.key === "/") search.current?.focus();
      else if (event.key === "?") help.current?.showModal();
      else if (event.key === "r") readAgain();
      else if (view) go(address(view[0]));
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [areOn]);
  const current = place.view === "host" ? "fleet" : place.view;
  const views = useViews();
  return (
    <header class="top">
      <nav aria-label="Views">
        {views.map(([view, label]) => (
          <a key={view} href={address(view)} aria-current={view === current ? "page" : undefined}>
            {label}
          </a>
        ))}
      </nav>
      <Search field={search} />
      <Moment />
      <button type="button" class="plain" onClick={() => help.current?.showModal()} aria-label="Help">
        ?
      </button>
      {door !== "none" && (
        <button type="button" class="plain" onClick={signOut}>
          Sign out
        </button>
      )}
      <dialog ref={help} aria-labelledby="help-title">
        <Help close={() => help.current?.close()} />
      </dialog>
    </header>
  );
}

/** That the fleet could not be read again, and since when it is as it is shown. */
function Stale() {
  const { fleet, failure, reading } = useSource(store);
  if (!fleet || !failure) return null;
  return <Old what="the fleet" moment={fleet.moment} failure={failure} again={readAgain} disabled={reading !== null} />;
}

/** When the fleet that is shown was read, and buttons to follow it or not, and to read it again. */
function Moment() {
  const { fleet, reading } = useSource(store);
  const { paused, hasFeed, trouble, asOf } = useSource(live);
  useEffect(() => {
    if (!fleet) return;
    follow();
    const timer = setInterval(unmark, 5000);
    return () => clearInterval(timer);
  }, [fleet === null]);
  if (!fleet) return <span class="moment" />;
  const moment = asOf > fleet.moment ? asOf : fleet.moment;
  const way = paused ? "paused" : trouble ? "not followed" : hasFeed ? "live" : "read again every 30 seconds";
  return (
    <span class="moment">
      <span class="dim" title={trouble}>
        {reading === null
          ? `${way}, as of ${moment.toLocaleTimeString()}`
          : `reading… ${plural(reading, "provider")}`}
      </span>
      <button type="button" class="small" aria-pressed={paused} onClick={() => setPaused(!paused)}>
        Pause
      </button>
      <button type="button" class="small" onClick={readAgain} disabled={reading !== null}>
        Refresh
      </button>
    </span>
  );
}

const MOST = 12;

function Search({ field }: { field: { current: HTMLInputElement | null } }) {
  const { fleet } = useSource(store);
  const { aggregates, projects } = useSource(names);
  const { areOn } = useSource(keys);
  const [text, setText] = useState("");
  const wanted = text.trim().toLowerCase();
  const found =
    wanted && fleet ? [...fleet.providers.values()].filter(({ name }) => name.toLowerCase().includes(wanted)).slice(0, MOST) : [];
  const named = wanted
    ? [...projects.values(), ...aggregates.values()].filter((name) => name.toLowerCase().includes(wanted)).slice(0, MOST)
    : [];
  const submit = (event: Event) => {
    event.preventDefault();
    if (!wanted) return;
    const uuid = dashed(wanted.replaceAll("-", ""));
    const [project, aggregate] = [idOf("projects", text), idOf("aggregates", text)];
    const exact = found.find(({ name }) => name.toLowerCase() === wanted) ?? (found.length === 1 ? found[0] : undefined);
    const isName = exact?.name.toLowerCase() !== wanted;
    if (isName && projects.has(project)) go(address("project", project));
    else if (isName && aggregates.has(aggregate)) go(address("fleet", "", { find: `aggregate:${aggregate}` }));
    else if (exact) go(address("host", exact.uuid));
    // Only the UUIDs of providers are known; any other is a consumer's.
    else if (isUuid(wanted)) go(address(!fleet || fleet.isPartial || fleet.providers.has(uuid) ? "host" : "consumers", uuid));
    else go(address("fleet", "", { find: found.length ? inNames(text.trim()) : text.trim() }));
    setText("");
    field.current?.blur();
  };
  return (
    <form role="search" onSubmit={submit}>
      <input
        ref={field}
        type="search"
        placeholder={`Host, project, aggregate, any UUID${areOn ? " ( / )" : ""}`}
        aria-label="Find a host, project or aggregate by name, or anything by UUID"
        list="found"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <datalist id="found">
        {found.map(({ uuid, name }) => (
          <option key={uuid} value={name} />
        ))}
        {named.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </form>
  );
}

const SINGLE_KEYS: [string, string][] = [
  ["/", "search"],
  ...VIEWS.map(([, label, key]): [string, string] => [key, label]),
  ["r", "read the fleet again"],
  ["?", "this help"],
];
const KEYS: [string, string][] = [
  ["← ↑ → ↓", "move from host to host on the map"],
  ["Enter", "open the host"],
  ["Esc", "leave the map's cell, or this help"],
];

function Help({ close }: { close: () => void }) {
  const { areOn } = useSource(keys);
  return (
    <>
      <h2 id="help-title">Keys</h2>
      <dl class="facts">
        {[...(areOn ? SINGLE_KEYS : []), ...KEYS].map(([key, what]) => [
          <dt key={key}>
            <kbd>{key}</kbd>
          </dt>,
          <dd key={`${key} does`}>{what}</dd>,
        ])}
      </dl>
      <label class="check">
        <input type="checkbox" checked={areOn} onChange={(event) => turnKeys(event.currentTarget.checked)} />
        Use the keys of a single character
      </label>
      <p>
        On the fleet, each cell is a host, filled from below according to the chosen colouring, which does not apply
        to crossed cells. The histogram above is a filter: choose any of its columns.
      </p>
      <p>Every view, with its filters, is an address: send it to a colleague.</p>
      <button type="button" onClick={close}>
        Close
      </button>
    </>
  );
}
