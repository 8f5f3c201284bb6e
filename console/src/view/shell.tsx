// The frame around the views: navigation, search, help, the age of the data.

import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ask, USAGES } from "../api.ts";
import { countOver, worries } from "../health.ts";
import { keys, turnKeys } from "../keys.ts";
import { follow, live, setPaused, unfollow } from "../live.ts";
import { lookUp, matching, matchingNames } from "../lookup.ts";
import { nameOf, names } from "../name.ts";
import { goOn, stop } from "../poll.ts";
import { address, go, leftBehind, usePlace, type Place } from "../route.ts";
import { begin, isOpen, session, signOut } from "../session.ts";
import { useSource } from "../source.ts";
import { forget, readAgain, readNames, store, unmark } from "../store.ts";
import { count, plural, seen, short } from "../unit.ts";
import { AskView } from "./ask.tsx";
import { Away } from "./away.tsx";
import { Boundary } from "./boundary.tsx";
import { ConsumersView } from "./consumers.tsx";
import { DrainView } from "./drain.tsx";
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
  ["now", "Now", "w", "placement:ledger:fleet"],
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
        <Away again={() => void begin()} />
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
  const subject = useSubject(place);
  const { cloud } = useSource(session);
  useEffect(() => {
    document.title = [subject, view, cloud || "Placement"].filter(Boolean).join(" · ");
  }, [subject, view, cloud]);
  useEffect(goOn, []);
  useEffect(() => void readNames(), []);
  useEffect(() => {
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
        <Away again={readAgain} />
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
  if (view === "drain") return "Drain";
  if (view === "consumers" && id) return "Consumer";
  return VIEWS.find(([name]) => name === view)?.[1] ?? "Nowhere";
}

/** What a view is about, as people call it. */
function useSubject({ view, id }: Place): string {
  const { fleet } = useSource(store);
  useSource(names);
  if (view === "host" || view === "drain") return seen(fleet?.providers.get(id)?.name ?? short(id));
  if (view === "project") return nameOf("projects", id) || id;
  return short(id);
}

function View({ place }: { place: Place }): ComponentChildren {
  switch (place.view) {
    case "fleet":
      return <FleetView place={place} />;
    case "host":
      return <HostView uuid={place.id} />;
    case "drain":
      return <DrainView key={place.id} place={place} />;
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
  const current = ["host", "drain"].includes(place.view) ? "fleet" : place.view;
  const views = useViews();
  return (
    <header class="top">
      <nav aria-label="Views">
        {views.map(([view, label]) => (
          <a key={view} href={address(view)} aria-current={view === current ? "page" : undefined}>
            {label}
            {view === "health" && <Badge />}
          </a>
        ))}
      </nav>
      <Search field={search} />
      <Moment />
      <Where />
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

/** How many findings of Health are to be mended, as far as that is known. */
function Badge() {
  const { fleet } = useSource(store);
  const { others } = useSource(worries);
  const over = useMemo(() => (fleet && !fleet.isPartial ? countOver(fleet) : 0), [fleet]);
  if (!(over + others)) return null;
  return (
    <>
      {" "}
      <span class="badge" title="to be mended">
        {count(over + others)}
        <span class="hidden"> to be mended</span>
      </span>
    </>
  );
}

/** Which cloud it is, and who looks at it, as far as that is known. */
function Where() {
  const { door, cloud, region, who } = useSource(session);
  const user = door === "none" ? "" : (who?.user ?? "by token");
  return (
    <span class="where">
      {cloud && <strong>{cloud}</strong>}
      {region && <span>{region}</span>}
      <span class="dim">{user}</span>
    </span>
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

function Search({ field }: { field: { current: HTMLInputElement | null } }) {
  const { fleet } = useSource(store);
  useSource(names);
  const { areOn } = useSource(keys);
  const [text, setText] = useState("");
  const options = text.trim() ? [...matching(fleet, text).map(({ name }) => name), ...matchingNames(text)] : [];
  const submit = (event: Event) => {
    event.preventDefault();
    if (!text.trim()) return;
    void lookUp(text, fleet).then(go);
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
        {options.map((name) => (
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
