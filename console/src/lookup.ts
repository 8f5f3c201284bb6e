// What a text in the head's search stands for: the address of the view that shows it.

import { get } from "./api.ts";
import { inNames } from "./find.ts";
import type { Fleet, Provider } from "./fleet.ts";
import { idOf, names } from "./name.ts";
import { address } from "./route.ts";
import { dashed, isUuid } from "./unit.ts";

const MOST = 12;

/** Return the first providers with a text in their names. */
export function matching(fleet: Fleet | null, text: string): Provider[] {
  const low = text.trim().toLowerCase();
  return low && fleet ? [...fleet.providers.values()].filter(({ name }) => name.toLowerCase().includes(low)).slice(0, MOST) : [];
}

/** Return the names of projects and aggregates with a text in them. */
export function matchingNames(text: string): string[] {
  const low = text.trim().toLowerCase();
  const { projects, aggregates } = names.value;
  return low ? [...projects.values(), ...aggregates.values()].filter((name) => name.toLowerCase().includes(low)).slice(0, MOST) : [];
}

/** Return where a text leads: names first, then what the fleet contains, then what the service knows. */
export async function lookUp(text: string, fleet: Fleet | null): Promise<string> {
  const said = text.trim();
  const low = said.toLowerCase();
  const providers = matching(fleet, said);
  const exact = providers.find(({ name }) => name.toLowerCase() === low);
  if (exact) return address("host", exact.uuid);
  const { projects, aggregates } = names.value;
  const [project, aggregate] = [idOf("projects", said), idOf("aggregates", said)];
  if (projects.has(project)) return address("project", project);
  if (aggregates.has(aggregate)) return inAggregate(aggregate);
  if (providers.length === 1) return address("host", providers[0]!.uuid);
  if (/^req-/.test(low)) return address("history", "", { about: "request_id", of: said });
  if (isUuid(said)) return lookUpUuid(dashed(low.replaceAll("-", "")), said, fleet);
  if (!providers.length && (await isProject(said))) return address("project", said);
  return address("fleet", "", { find: providers.length ? inNames(said) : said });
}

function inAggregate(uuid: string): string {
  return address("fleet", "", { find: `aggregate:${uuid}` });
}

async function lookUpUuid(uuid: string, said: string, fleet: Fleet | null): Promise<string> {
  const all = [...(fleet?.providers.values() ?? [])];
  if (fleet?.providers.has(uuid)) return address("host", uuid);
  if (all.some(({ aggregates }) => aggregates.includes(uuid))) return inAggregate(uuid);
  // Projects are written in any way: with dashes or without.
  for (const project of new Set([said, uuid, uuid.replaceAll("-", "")])) {
    if (await isProject(project)) return address("project", project);
  }
  const isHost = (!fleet || fleet.isPartial) && (await has(`resource_providers/${uuid}`, () => true));
  return address(isHost ? "host" : "consumers", uuid);
}

function isProject(project: string): Promise<boolean> {
  const isUsed = ({ usages }: { usages: object }) => Object.keys(usages).length > 0;
  return has(`usages?project_id=${encodeURIComponent(project)}`, isUsed);
}

/** Whether the service has something; what it refuses to show is not there. */
async function has<T>(path: string, test: (answer: T) => boolean): Promise<boolean> {
  try {
    return test(await get<T>(path));
  } catch {
    return false;
  }
}
