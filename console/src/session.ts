// Who is signed in: a token of the identity service, kept for this tab only.

import { Failure, failure, send } from "./api.ts";
import { keyOf } from "./root.ts";
import { Source } from "./source.ts";
import { tab } from "./storage.ts";

const KEY = keyOf("token");
const WHO = keyOf("who");
const PATH = "console/session";

/** How users sign in; `none` means that they need not. */
export type Door = "none" | "token" | "password";

/** Whom a token is for, as far as that is known: not for a token that was pasted. */
export interface Who {
  user: string;
  project: string;
  roles: string[];
}

export interface Session {
  door: Door | null;
  /** What operators call the cloud and the region; empty if they do not. */
  cloud: string;
  region: string;
  token: string;
  who: Who | null;
  /** The policy rules that the user's roles do not satisfy, as far as they were asked. */
  denied: ReadonlySet<string>;
  failure: Failure | null;
  expired: boolean;
}

export const session = new Source<Session>({
  door: null,
  cloud: "",
  region: "",
  token: tab.get(KEY) ?? "",
  who: tab.read<Who>(WHO),
  denied: new Set(),
  failure: null,
  expired: false,
});

/** Remember that the user's roles do not satisfy a rule, to hide what needs it. */
export function deny(rule: string): void {
  if (!session.value.denied.has(rule)) session.change({ denied: new Set([...session.value.denied, rule]) });
}

export function token(): string {
  return session.value.token;
}

export function isOpen({ door, token }: Session): boolean {
  return door !== null && (door === "none" || token !== "");
}

/** Ask the service how users sign in. */
export async function begin(): Promise<void> {
  session.change({ failure: null });
  try {
    const response = await send(PATH, { headers: { Accept: "application/json" } });
    if (!response.ok) throw await failure(PATH, response);
    const { sign_in: door, cloud, region } = (await response.json()) as { sign_in: Door; cloud: string; region: string };
    // Without authentication, everybody counts as the administrator.
    session.change({ door, cloud, region, ...(door === "none" ? { token: "admin" } : {}) });
  } catch (error) {
    session.change({ failure: error as Failure });
  }
}

export interface Credentials {
  user: string;
  password: string;
  project: string;
  user_domain: string;
  project_domain: string;
}

export async function signIn(given: { token: string } | Credentials): Promise<void> {
  let value = "token" in given ? given.token : "";
  let who: Who | null = null;
  if (!("token" in given)) {
    const response = await send(PATH, {
      method: "POST",
      headers: { Accept: "application/json", "Content-Type": "application/json" },
      body: JSON.stringify(given),
    });
    if (!response.ok) throw await failure(PATH, response);
    const begun = (await response.json()) as { token: string; user: string; project_id: string; roles: string[] };
    value = begun.token;
    who = { user: begun.user, project: begun.project_id, roles: begun.roles };
    tab.put(WHO, JSON.stringify(who));
  }
  tab.put(KEY, value);
  session.change({ token: value, who, denied: new Set(), expired: false });
}

export function signOut(): void {
  leave(false);
}

/** The token is no longer valid: back to the sign-in. */
export function expire(): void {
  if (session.value.door === "none") return;
  leave(true);
}

function leave(expired: boolean): void {
  tab.put(KEY, null);
  tab.put(WHO, null);
  session.change({ token: "", who: null, denied: new Set(), expired });
}
