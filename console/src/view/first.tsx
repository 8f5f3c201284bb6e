// A fresh database: what to do first.

import { ROOT } from "../root.ts";
import { session } from "../session.ts";
import { refresh } from "../store.ts";
import { Copy } from "./part.tsx";

const HOST = "8d2ac8d2-4bc8-4d57-8d9b-3ea6a6f2b001";

function commands(): string[] {
  const base = ROOT.href.replace(/\/$/, "");
  const token = session.value.door === "none" ? "admin" : "$OS_TOKEN";
  const call = (method: string, path: string, body: string) =>
    [
      `curl -X ${method} ${base}${path}`,
      `-H "X-Auth-Token: ${token}" -H 'Content-Type: application/json'`,
      "-H 'OpenStack-API-Version: placement latest'",
      `-d '${body}'`,
    ].join(" \\\n    ");
  return [
    call("POST", "/resource_providers", `{"name": "host-1", "uuid": "${HOST}"}`),
    call(
      "PUT",
      `/resource_providers/${HOST}/inventories`,
      '{"resource_provider_generation": 0,\n         "inventories": {"VCPU": {"total": 16, "allocation_ratio": 4.0}}}',
    ),
  ];
}

export function FirstSteps() {
  const [create, fill] = commands() as [string, string];
  return (
    <section class="prose">
      <h2 class="title">There is no resource provider yet</h2>
      <p>
        A resource provider is whatever has something to give: a host, a card in it, a shared disk. Compute
        services make theirs by themselves when they start. By hand, make a host:
      </p>
      <Copy text={create} label="the command that creates a host" />
      <p>Give it processors:</p>
      <Copy text={fill} label="the command that gives it processors" />
      <p>Or fill the empty database with a cloud to look at, and remove it again later:</p>
      <Copy text="placement-manage demo --hosts 1000" label="the command that creates a demonstration cloud" />
      <Copy text="placement-manage demo --remove" label="the command that removes it" />
      <p>
        <button type="button" onClick={() => void refresh()}>
          Look again
        </button>
      </p>
    </section>
  );
}
