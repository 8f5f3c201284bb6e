// Parts that several views share: bars, chips, states, text to copy.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { away, USAGES, type Failure } from "../api.ts";
import type { Sum } from "../fleet.ts";
import { nameOf, names, shared, split, type Named } from "../name.ts";
import { address } from "../route.ts";
import { session } from "../session.ts";
import { useSource } from "../source.ts";
import { age, amount, count, exact, percent, short, splitUnseen } from "../unit.ts";

/** Used, reserved and free of one resource class, in one line. */
export function Bar({ name, sum }: { name: string; sum: Sum }) {
  const whole = Math.max(1, sum.capacity, sum.used);
  return (
    <span
      class={sum.used > sum.capacity ? "bar bar-over" : "bar"}
      role="img"
      aria-label={`${percent(sum.used, sum.capacity)} of ${name} used`}
      title={`${exact(name, sum.used)} used of ${count(sum.capacity)}`}
    >
      <span class="bar-used" style={{ width: `${(100 * sum.used) / whole}%` }} />
    </span>
  );
}

/** Words that may be long, in which UUIDs stand behind their names. */
export function Name({ text }: { text: string }) {
  useSource(names);
  const parts = split(text);
  if (parts.length === 1) return <Broken text={text} />;
  return <bdi>{parts.map((part, at) => (at % 2 ? <Id key={at} id={part} /> : <Broken key={at} text={part} />))}</bdi>;
}

/** An aggregate or a project: its name, and its UUID. */
export function Id({ id, kind }: { id: string; kind?: Named }) {
  useSource(names);
  const name = kind ? nameOf(kind, id) : nameOf("aggregates", id) || nameOf("projects", id);
  if (!name) return <Broken text={id} />;
  return (
    <span class="named" title={id}>
      <Broken text={name} />{" "}
      <span class="dim mono">{short(id)}</span>
    </span>
  );
}

/** A project, which leads to its page. */
export function Project({ id }: { id: string }) {
  if (!id) return <>–</>;
  return (
    <a class={nameOf("projects", id) ? "" : "mono"} href={address("project", id)}>
      <Id id={id} kind="projects" />
    </a>
  );
}

/** What may be typed for an aggregate or a project. */
export function Known({ id, kind, ids, tell }: { id: string; kind: Named; ids?: readonly string[]; tell?: (id: string) => string }) {
  const known = useSource(names)[kind];
  const several = shared(known);
  const value = (each: string) => (several.has(known.get(each) ?? "") ? each : (known.get(each) ?? each));
  return (
    <datalist id={id}>
      {(ids ?? [...known.keys()]).map((each) => (
        <option key={each} value={value(each)}>
          {[value(each) === each ? known.get(each) : each, tell?.(each)].filter(Boolean).join(" · ")}
        </option>
      ))}
    </datalist>
  );
}

/** A name that may be long: its lines break between its parts, not within. */
function Broken({ text }: { text: string }) {
  return (
    <bdi>
      {splitUnseen(text).map((part, at) =>
        at % 2 ? (
          <span key={at} class="unseen" title="an invisible character">
            {part}
          </span>
        ) : (
          part.split(/(?<=[_\-.:/,])(?=[^_\-.:/,\d])/).flatMap((each, place) => (place ? [<wbr key={`${at} ${place}`} />, each] : [each]))
        ),
      )}
    </bdi>
  );
}

/** A bar for a number among others. */
export function Length({ part, whole, faint = 0 }: { part: number; whole: number; faint?: number }) {
  const width = (value: number) => ({ width: `${whole > 0 ? (100 * value) / whole : 0}%` });
  return (
    <span class="bar" aria-hidden="true">
      {faint > 0 && <span class="bar-before" style={width(faint)} />}
      <span class="bar-used" style={width(part)} />
    </span>
  );
}

export function Amount({ name, value }: { name: string; value: number }) {
  return <span title={exact(name, value)}>{amount(name, value)}</span>;
}

/** How long ago a time was. */
export function Age({ since, now }: { since: Date | string | null; now: Date }) {
  if (!since) return <>–</>;
  const time = new Date(since);
  return <span title={time.toISOString()}>{age(time, now)}</span>;
}

export function Loading({ what, read }: { what: string; read?: number | null }) {
  return (
    <p class="state" role="status">
      Reading {what} {read ? `– ${count(read)} so far` : ""}…
    </p>
  );
}

export function Failed({ failure, retry }: { failure: Failure; retry?: () => void }) {
  const isAway = useSource(away).since !== null;
  if (failure.rule) return <Denied failure={failure} />;
  if (isAway && !failure.status) return <p class="state dim">Nothing was read yet.</p>;
  return (
    <div class="state failed" role="alert">
      <p>
        <strong>{failure.detail}</strong>
      </p>
      <p class="dim">
        Request: <code>/{failure.what}</code>
        {failure.status ? ` · status ${failure.status}` : ""}
        {failure.requestId && (
          <>
            {" · request "}
            <code>{failure.requestId}</code>
          </>
        )}
      </p>
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** That the user's roles do not allow it, what does, and where to go instead. */
function Denied({ failure }: { failure: Failure }) {
  const { who } = useSource(session);
  return (
    <section class="state failed" role="alert">
      <h2 class="title">Your roles do not allow this</h2>
      <p>
        The service answered 403: the policy rule <code>{failure.rule}</code> is not satisfied.{" "}
        {failure.rule === USAGES
          ? "Unless the operator has changed it, it takes the role reader in the project, or admin."
          : "Unless the operator has changed it, it takes the role admin or service."}
      </p>
      {who && (
        <p>
          You signed in to the project{" "}
          <code>
            <Id id={who.project} kind="projects" />
          </code> with{" "}
          {who.roles.length ? `the roles ${who.roles.join(", ")}` : "no role"}.
        </p>
      )}
      {failure.rule !== USAGES && (
        <p>
          Members of a project may see its usage: <a href={address("project")}>show what the project uses</a>.
        </p>
      )}
    </section>
  );
}

/** Text with a button that copies it. */
export function Copy({ text, label, shown = true }: { text: string; label: string; shown?: boolean }) {
  const [done, setDone] = useState("");
  const timer = useRef(0);
  useEffect(() => () => clearTimeout(timer.current), []);
  const copy = async () => {
    setDone((await place(text)) ? "copied" : "select it, and copy it by hand");
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => setDone(""), 2000);
  };
  return (
    <span class="copy">
      {shown && <code>{text}</code>}
      <button type="button" class="small" onClick={copy} title={text}>
        {shown ? "Copy" : label}
        {shown && <span class="hidden"> {label}</span>}
      </button>
      <span role="status" class="dim">
        {done}
      </span>
    </span>
  );
}

/** Browsers offer the clipboard only to pages of a secure origin. */
async function place(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

export function Field({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <label class="field">
      <span>{label}</span>
      {children}
    </label>
  );
}

interface Choosing {
  label: string;
  value: string;
  options: readonly (readonly [string, string])[];
  choose: (value: string) => void;
}

export function Select({ label, value, options, choose }: Choosing) {
  return (
    <Field label={label}>
      <select value={value} onChange={(event) => choose(event.currentTarget.value)}>
        {options.map(([each, text]) => (
          <option key={each} value={each}>
            {text}
          </option>
        ))}
      </select>
    </Field>
  );
}

/** The first rows of a long list, and a button for more of them. */
export function usePage(size: number, key: string): [number, (all: number) => ComponentChildren] {
  const [shown, setShown] = useState({ key, most: size });
  const most = shown.key === key ? shown.most : size;
  const more = (all: number) =>
    all > most && (
      <p>
        <button type="button" onClick={() => setShown({ key, most: most * 2 })}>
          Show more
        </button>{" "}
        <span class="dim">
          {count(most)} of {count(all)} are shown
        </span>
      </p>
    );
  return [most, more];
}
