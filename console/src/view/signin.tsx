// The sign-in: a token, or what the identity service needs to issue one.

import { useState } from "preact/hooks";
import type { Failure } from "../api.ts";
import { session, signIn, type Credentials } from "../session.ts";
import { useSource } from "../source.ts";
import { Failed } from "./part.tsx";

const FIELDS: [keyof Credentials, string, "text" | "password", string][] = [
  ["user", "User", "text", "username"],
  ["password", "Password", "password", "current-password"],
  ["project", "Project", "text", "off"],
  ["user_domain", "Domain of the user", "text", "off"],
  ["project_domain", "Domain of the project", "text", "off"],
];
const BLANK: Credentials = {
  user: "",
  password: "",
  project: "",
  user_domain: "Default",
  project_domain: "Default",
};

export function SignIn() {
  const { door, expired } = useSource(session);
  const [way, setWay] = useState<"password" | "token">(door === "token" ? "token" : "password");
  const [given, setGiven] = useState(BLANK);
  const [token, setToken] = useState("");
  const [failure, setFailure] = useState<Failure | null>(null);
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setFailure(null);
    try {
      await signIn(way === "token" ? { token: token.trim() } : given);
    } catch (error) {
      setFailure(error as Failure);
      setBusy(false);
    }
  };
  return (
    <main class="signin">
      <h1>Placement</h1>
      {expired && (
        <p role="alert">
          The token is not valid, or has expired. Sign in again to return to where you were.
        </p>
      )}
      <form onSubmit={submit}>
        {way === "password" &&
          FIELDS.map(([name, label, type, complete]) => (
            <label key={name} class="field">
              <span>{label}</span>
              <input
                name={name}
                type={type as "text"}
                required
                autocomplete={complete as "off"}
                value={given[name]}
                onInput={(event) => setGiven({ ...given, [name]: event.currentTarget.value })}
              />
            </label>
          ))}
        {way === "token" && (
          <label class="field">
            <span>Token</span>
            <input
              name="token"
              type="password"
              required
              autocomplete="off"
              value={token}
              onInput={(event) => setToken(event.currentTarget.value)}
            />
          </label>
        )}
        {failure && <Failed failure={failure} />}
        <p>
          <button type="submit" class="main" disabled={busy}>
            Sign in
          </button>{" "}
          {door === "password" && (
            <button type="button" class="plain" onClick={() => setWay(way === "token" ? "password" : "token")}>
              {way === "token" ? "Use a password" : "Use a token"}
            </button>
          )}
        </p>
        <p class="dim">The token stays in this tab, and goes nowhere but to this service.</p>
      </form>
    </main>
  );
}
