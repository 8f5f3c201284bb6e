// Place: put consumers on hosts that serve the question, or only say which these would be.

import { useRef, useState } from "preact/hooks";
import { type Failure, get, wrap } from "../api.ts";
import { idOf } from "../name.ts";
import { address } from "../route.ts";
import { session } from "../session.ts";
import { useSource } from "../source.ts";
import { amount, dashed, plural } from "../unit.ts";
import { Export } from "./export.tsx";
import { Until } from "./lease.tsx";
import { Failed, Field, Known, Name } from "./part.tsx";

const RULE = "placement:ledger:placements";
const MOST = 1000;

interface Placed {
  consumer: string;
  host: string | null;
  name: string | null;
  existed: boolean;
  allocations: Record<string, { resources: Record<string, number> }>;
  expires_at: string | null;
}

interface Answer {
  placements: Placed[];
  unplaced: string[];
  dry_run: boolean;
}

interface Wanted {
  number: string;
  project: string;
  user: string;
  type: string;
  isSpread: boolean;
  lease: string;
}

const LEASES: [string, string][] = [
  ["", "for good"],
  ["300", "for 5 minutes"],
  ["3600", "for an hour"],
  ["86400", "for a day"],
];

export function Place({ query }: { query: string }) {
  const { denied, who } = useSource(session);
  const [wanted, setWanted] = useState<Wanted>({
    number: "1",
    project: who?.project ?? "",
    user: "",
    type: "INSTANCE",
    isSpread: false,
    lease: "",
  });
  const latest = useRef(wanted);
  latest.current = wanted;
  const [consumers, setConsumers] = useState<string[]>([]);
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [busy, setBusy] = useState(false);
  if (denied.has(RULE)) return failure ? <Failed failure={failure} /> : null;
  const change = (changes: Partial<Wanted>) => {
    setWanted({ ...wanted, ...changes });
    setAnswer(null);
  };
  const send = async (isDry: boolean, whom: string[]) => {
    setBusy(true);
    setFailure(null);
    // What would be placed is of use only for what is wanted still; what was placed always is.
    const isLate = () => isDry && latest.current !== wanted;
    try {
      const body = render(query, wanted, whom, isDry);
      const found = await get<Answer>("ledger/v1/placements", { method: "POST", body });
      if (!isLate()) setAnswer(found);
    } catch (error) {
      // They may have been placed though the answer was lost: the same ones can be sent again.
      if (isDry) setAnswer(null);
      if (!isLate()) setFailure(wrap(error, "ledger/v1/placements"));
    }
    setBusy(false);
  };
  const tryIt = (event: Event) => {
    event.preventDefault();
    // The same consumers are placed afterwards: sent twice, they are placed once.
    const whom = Array.from({ length: Number(wanted.number) }, newUuid);
    setConsumers(whom);
    void send(true, whom);
  };
  const isPlaced = answer !== null && !answer.dry_run;
  return (
    <section>
      <details>
        <summary>Place it</summary>
        <form class="controls" onSubmit={tryIt}>
          <Field label="How many consumers">
            <input
              type="number"
              min={1}
              max={MOST}
              required
              value={wanted.number}
              onInput={(event) => change({ number: event.currentTarget.value })}
            />
          </Field>
          <Field label="Project of the consumers">
            <input
              required
              list="known-projects"
              value={wanted.project}
              size={34}
              onInput={(event) => change({ project: event.currentTarget.value })}
            />
          </Field>
          <Known id="known-projects" kind="projects" />
          <Field label="User">
            <input required value={wanted.user} onInput={(event) => change({ user: event.currentTarget.value })} />
          </Field>
          <Field label="Type">
            <input
              required
              pattern="[A-Z0-9_]+"
              value={wanted.type}
              onInput={(event) => change({ type: event.currentTarget.value.toUpperCase() })}
            />
          </Field>
          <Field label="How long">
            <select value={wanted.lease} onChange={(event) => change({ lease: event.currentTarget.value })}>
              {LEASES.map(([seconds, text]) => (
                <option key={seconds} value={seconds}>
                  {text}
                </option>
              ))}
            </select>
          </Field>
          <label class="check">
            <input type="checkbox" checked={wanted.isSpread} onChange={() => change({ isSpread: !wanted.isSpread })} />
            each on a host of its own
          </label>
          <button type="submit" disabled={busy}>
            Dry run
          </button>
        </form>
        {failure && <Failed failure={failure} />}
        {answer && <Outcome answer={answer} />}
        {answer?.dry_run && answer.placements.length > 0 && (
          <p>
            <button type="button" class="main" disabled={busy} onClick={() => void send(false, consumers)}>
              Place {plural(consumers.length, "consumer")}
            </button>{" "}
            <span class="dim">writes allocations; the service chooses anew, so the hosts may be others</span>
          </p>
        )}
        {isPlaced && <p class="dim">To give it back, delete the allocations of the consumer.</p>}
      </details>
    </section>
  );
}

function render(query: string, wanted: Wanted, consumers: string[], isDry: boolean): object {
  return {
    query,
    consumers,
    project_id: idOf("projects", wanted.project),
    user_id: wanted.user,
    consumer_type: wanted.type,
    dry_run: isDry,
    ...(wanted.isSpread ? { spread: { per: "host", at_most: 1 } } : {}),
    ...(wanted.lease ? { lease_seconds: Number(wanted.lease) } : {}),
  };
}

/** Browsers have `crypto.randomUUID` only on pages of a secure origin. */
function newUuid(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return dashed(hex);
}

function Outcome({ answer: { placements, unplaced, dry_run: isDry } }: { answer: Answer }) {
  const amounts = ({ allocations }: Placed) => {
    const sums = new Map<string, number>();
    for (const { resources } of Object.values(allocations)) {
      for (const name in resources) sums.set(name, (sums.get(name) ?? 0) + resources[name]!);
    }
    return [...sums].map(([name, value]) => `${amount(name, value)} ${name}`).join(", ");
  };
  return (
    <>
      <p role="status">
        <strong>
          {isDry ? `${plural(placements.length, "consumer")} would be placed` : `${plural(placements.length, "consumer")} placed`}
        </strong>
        {unplaced.length > 0 && `, ${unplaced.length} not: there is no room`}
      </p>
      <div class="wide" tabIndex={0} role="region" aria-label="Placements">
        <table>
          <thead>
            <tr>
              <th>Consumer</th>
              <th>Host</th>
              <th>Takes</th>
              {!isDry && <th>Lease ends</th>}
            </tr>
          </thead>
          <tbody>
            {placements.map((each) => (
              <tr key={each.consumer}>
                <td class="mono">{isDry ? each.consumer : <a href={address("consumers", each.consumer)}>{each.consumer}</a>}</td>
                <td class="name">
                  {each.host && (
                    <a href={address("host", each.host)}>
                      <Name text={each.name ?? each.host} />
                    </a>
                  )}
                </td>
                <td>{amounts(each)}</td>
                {!isDry && <td>{each.expires_at ? <Until time={each.expires_at} /> : "–"}</td>}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <Export
        name="placements"
        list={() => ({
          columns: ["consumer", "host", "name", "takes", "lease_ends"],
          rows: placements.map((each) => [each.consumer, each.host, each.name, amounts(each), each.expires_at]),
        })}
      />
    </>
  );
}
