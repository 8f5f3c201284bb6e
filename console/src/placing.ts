// A request for placements: what the fields of its form say, as the service takes it.

import { idOf } from "./name.ts";
import { isUuid } from "./unit.ts";

export interface Placed {
  consumer: string;
  host: string | null;
  name: string | null;
  existed: boolean;
  allocations: Record<string, { resources: Record<string, number> }>;
  consumer_generation?: number | null;
  expires_at: string | null;
}

/** The fields, as they were typed. */
export interface Wishes {
  number: string;
  project: string;
  user: string;
  type: string;
  /** How many at least; empty for all. */
  atLeast: string;
  /** `host` or `aggregates`; empty for no bound. */
  spread: string;
  atMost: string;
  together: string;
  aggregates: string;
  prefer: string;
  lease: string;
}

const QUALITIES = ["trait", "aggregate", "host", "free"];
const HEAVIEST = 1000;

/** Return the body of the request, or why there is none. */
export function bodyOf(query: string, wishes: Wishes, consumers: readonly string[], isDry: boolean): object | string {
  const aggregates = words(wishes.aggregates).map((each) => idOf("aggregates", each));
  const prefer = words(wishes.prefer).map(preference);
  const fault = prefer.find((each) => typeof each === "string");
  if (fault !== undefined) return fault;
  const isByAggregate = wishes.spread === "aggregates" || wishes.together === "aggregates";
  const unknown = aggregates.find((each) => !isUuid(each));
  if (isByAggregate && unknown) return `No aggregate, or several of them, have the name ${unknown}.`;
  if (isByAggregate && !aggregates.length) return "The aggregates are missing: names or UUIDs, with commas between them.";
  if (wishes.spread && wishes.spread === wishes.together) return "Spread and together over the same domains exclude each other.";
  const domains = (kind: string) => (kind === "host" ? kind : { aggregates });
  return {
    query,
    consumers,
    project_id: idOf("projects", wishes.project),
    user_id: wishes.user,
    consumer_type: wishes.type,
    dry_run: isDry,
    ...(wishes.atLeast ? { at_least: Number(wishes.atLeast) } : {}),
    ...(wishes.spread ? { spread: { per: domains(wishes.spread), at_most: Number(wishes.atMost) || 1 } } : {}),
    ...(wishes.together ? { together: domains(wishes.together) } : {}),
    ...(prefer.length ? { prefer } : {}),
    ...(wishes.lease ? { lease_seconds: Number(wishes.lease) } : {}),
  };
}

function words(text: string): string[] {
  return text.split(",").map((each) => each.trim()).filter(Boolean);
}

/** `trait=NAME`, `aggregate=…`, `host=…` or `free=CLASS`, with `:WEIGHT` if it is not 1; or what is wrong with it. */
function preference(text: string): Record<string, string | number> | string {
  const [, quality = "", name = "", weight = "1"] = /^([a-z]+)=(.*?)(?::(-?[\d.]+))?$/.exec(text) ?? [];
  const number = Number(weight);
  if (!QUALITIES.includes(quality) || !name) return `“${text}” is no preference: trait=NAME, aggregate=NAME, host=UUID or free=CLASS.`;
  if (!number || !(Math.abs(number) <= HEAVIEST)) return `The weight ${weight} is 0, or not a number from -${HEAVIEST} to ${HEAVIEST}.`;
  return { [quality]: quality === "aggregate" ? idOf("aggregates", name) : name, weight: number };
}

/** Return the request that gives everything back, all or nothing, unless a consumer has changed meanwhile. */
export function undoOf(placements: readonly Placed[], { project, user, type }: Wishes): object {
  const owner = { project_id: idOf("projects", project), user_id: user, consumer_type: type };
  const gone = placements.filter(({ existed }) => !existed);
  return Object.fromEntries(
    gone.map(({ consumer, consumer_generation: generation }) => [consumer, { allocations: {}, consumer_generation: generation ?? null, ...owner }]),
  );
}
