// Who is signed in: a token of the identity service, kept for this tab only.

import { Failure, failure, send } from "./api.ts";
import { Source } from "./source.ts";

const KEY = "placement-token";
const PATH = "console/session";

/** How users sign in; `none` means that they need not. */
export type Door = "none" | "token" | "password";

export interface Session {
  door: Door | null;
  token: string;
  failure: Failure | null;
  expired: boolean;
}

export const session = new Source<Session>({
  door: null,
  token: sessionStorage.getItem(KEY) ?? "",
  failure: null,
  expired: false,
});

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
    const { sign_in: door } = (await response.json()) as { sign_in: Door };
    // Without authentication, everybody counts as the administrator.
    session.change({ door, ...(door === "none" ? { token: "admin" } : {}) });
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
  if (!("token" in given)) {
    const response = await send(PATH, {
      method: "POST",
      headers: { Accept: "application/json", "Content-Type": "application/json" },
      body: JSON.stringify(given),
    });
    if (!response.ok) throw await failure(PATH, response);
    value = ((await response.json()) as { token: string }).token;
  }
  sessionStorage.setItem(KEY, value);
  session.change({ token: value, expired: false });
}

export function signOut(): void {
  sessionStorage.removeItem(KEY);
  session.change({ token: "", expired: false });
}

/** The token is no longer valid: back to the sign-in. */
export function expire(): void {
  if (session.value.door === "none") return;
  sessionStorage.removeItem(KEY);
  session.change({ token: "", expired: true });
}
