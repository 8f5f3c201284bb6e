// Flavors as requests: the query that Nova sends for a server of a flavor, and of an image.
// The cases of tests/commands/request/nova.json are those of `placement-request`, too.

type Properties = Record<string, string>;
type Document = Record<string, unknown>;

export interface Translation {
  /** Empty if there are faults. */
  query: string;
  /** Why Nova, or the service, would refuse it. */
  faults: string[];
  /** Properties that the query cannot contain, or that have no effect. */
  notes: string[];
}

// The second names are those in the output of `openstack flavor show -f json`.
const AMOUNTS: Record<string, readonly string[]> = {
  vcpus: ["vcpus"],
  memory: ["memory_mb", "ram"],
  root: ["root_gb", "disk"],
  ephemeral: ["ephemeral_gb", "OS-FLV-EXT-DATA:ephemeral"],
  swap: ["swap"],
};
const OPTIONAL = new Set(["ephemeral", "swap"]);
const KEY = /^(resources|trait)([A-Za-z0-9_-]{1,64})?:(.+)$/;
// Nova puts servers by these in other ways than by the query.
const OTHER_WAYS =
  /^(pci_passthrough:alias|accel:device_profile|hw:numa_.*|hw:mem_page_size|aggregate_instance_extra_specs:.*|hw:viommu_model|hw:locked_memory)$/;

/** What each value of an extra spec, or of the image property of that name, adds to the required traits. */
const TRAITS: Record<string, Record<string, readonly string[]>> = {
  "hw:cpu_thread_policy": { require: ["HW_CPU_HYPERTHREADING"], isolate: ["!HW_CPU_HYPERTHREADING"], prefer: [] },
  "hw:tpm_version": { "1.2": ["COMPUTE_SECURITY_TPM_1_2"], "2.0": ["COMPUTE_SECURITY_TPM_2_0"] },
  "hw:tpm_model": { "tpm-tis": ["COMPUTE_SECURITY_TPM_TIS"], "tpm-crb": ["COMPUTE_SECURITY_TPM_CRB"] },
  "hw:maxphysaddr_mode": { emulate: ["COMPUTE_ADDRESS_SPACE_EMULATED"], passthrough: ["COMPUTE_ADDRESS_SPACE_PASSTHROUGH"] },
};
const POLICIES = ["shared", "dedicated", "mixed"];

interface Group {
  amounts: Map<string, number>;
  traits: Set<string>;
}

class Translator {
  readonly faults: string[] = [];
  readonly notes: string[] = [];
  readonly groups = new Map<string, Group>([["", { amounts: new Map(), traits: new Set() }]]);
  policy = "";

  constructor(
    private readonly specs: Properties,
    private readonly image: Properties,
  ) {}

  private get own(): Group {
    return this.groups.get("")!;
  }

  private group(suffix: string): Group {
    const group = this.groups.get(suffix) ?? { amounts: new Map(), traits: new Set() };
    this.groups.set(suffix, group);
    return group;
  }

  /** The value of an extra spec, or of the image property of that name. */
  private value(spec: string): string | undefined {
    return this.specs[spec] ?? this.image[spec.replace(":", "_")];
  }

  /** What extra specs and image properties say in the words of the query. */
  readPlain(): void {
    for (const [key, value] of Object.entries(this.specs)) {
      const [, kind, suffix = "", name = ""] = KEY.exec(key) ?? [];
      const isRight = kind === "resources" ? /^\d{1,15}$/.test(value) && /^[A-Z][A-Z0-9_]*$/.test(name) : value === "required" || value === "forbidden";
      if (key === "group_policy" && (value === "none" || value === "isolate")) this.policy = value;
      else if (kind ? !isRight : key === "group_policy") this.notes.push(`${key} = ${value} has no effect.`);
      else if (kind === "resources") this.group(suffix).amounts.set(name, Number(value));
      else if (kind) this.group(suffix).traits.add(value === "forbidden" ? `!${name}` : name);
    }
    for (const [key, value] of Object.entries(this.image)) {
      if (key.startsWith("trait:") && value === "required") this.own.traits.add(key.slice("trait:".length));
    }
    const others = Object.keys(this.specs).filter((key) => OTHER_WAYS.test(key)).sort();
    if (others.length) this.notes.push(`Not part of the query: ${others.join(", ")}.`);
  }

  /** Implicit amounts: each only if its class is in no group. */
  readAmounts({ vcpus = 0, memory = 0, root = 0, ephemeral = 0, swap = 0 }: Record<string, number>): void {
    const named = new Set([...this.groups.values()].flatMap(({ amounts }) => [...amounts.keys()]));
    const put = (name: string, amount: number) => named.has(name) || this.own.amounts.set(name, amount);
    if (!named.has("PCPU")) put("VCPU", vcpus);
    put("MEMORY_MB", memory);
    put("DISK_GB", root + ephemeral + Math.ceil(swap / 1024));
    this.readProcessors(vcpus, named.has("VCPU"));
  }

  private readProcessors(vcpus: number, isNamed: boolean): void {
    const spec = "hw:cpu_policy";
    const [policy, ofImage] = [this.specs[spec], this.image["hw_cpu_policy"]];
    const chosen = policy ?? ofImage;
    if (chosen === undefined) return;
    if (!POLICIES.includes(chosen)) this.refuse(policy === undefined ? "hw_cpu_policy" : spec, chosen, `it is none of ${POLICIES.join(", ")}`);
    else if (policy === "shared" && ofImage === "dedicated") this.refuse("hw_cpu_policy", ofImage, `the image may not override ${spec} = shared`);
    else if (chosen === "dedicated") {
      const isolated = this.specs["hw:emulator_threads_policy"] === "isolate" ? 1 : 0;
      if (!isNamed) this.own.amounts.delete("VCPU");
      this.own.amounts.set("PCPU", vcpus + isolated);
    } else if (chosen === "mixed") this.readMask(vcpus);
  }

  private readMask(vcpus: number): void {
    const spec = "hw:cpu_dedicated_mask";
    const mask = this.specs[spec];
    if (mask === undefined) return this.refuse("hw:cpu_policy", "mixed", `${spec} is missing`);
    const dedicated = countMask(mask, vcpus);
    if (dedicated === null) return this.refuse(spec, mask, `it names other processors than the ${vcpus} of the flavor`);
    this.own.amounts.set("PCPU", dedicated).set("VCPU", vcpus - dedicated);
  }

  /** What else Nova translates. */
  readOthers(): void {
    for (const [spec, values] of Object.entries(TRAITS)) {
      const value = this.value(spec);
      if (value === undefined) continue;
      const traits = values[value];
      if (!traits) this.refuse(spec, value, `it is none of ${Object.keys(values).join(", ")}`);
      else traits.forEach((each) => this.own.traits.add(each));
    }
    const [version, model] = [this.value("hw:tpm_version"), this.value("hw:tpm_model")];
    if (model !== undefined && version === undefined) this.refuse("hw:tpm_model", model, "hw:tpm_version is missing");
    if (version !== undefined && model === undefined) this.own.traits.add("COMPUTE_SECURITY_TPM_TIS");
    const encryption = this.value("hw:mem_encryption") ?? "";
    if (/^true$/i.test(encryption)) {
      if (this.image["hw_firmware_type"] !== "uefi") this.refuse("hw:mem_encryption", encryption, "the image has no hw_firmware_type = uefi");
      this.own.amounts.set("MEM_ENCRYPTION_CONTEXT", 1);
      this.own.traits.add("HW_CPU_X86_AMD_SEV");
    }
    for (const name of (this.specs["hw:pmem"] ?? "").split(",").filter(Boolean)) {
      const key = `CUSTOM_PMEM_NAMESPACE_${name.trim()}`;
      this.own.amounts.set(key, (this.own.amounts.get(key) ?? 0) + 1);
    }
  }

  private refuse(what: string, value: string, why: string): void {
    this.faults.push(`Nova refuses ${what} = ${value}: ${why}.`);
  }

  /** Parameters, and what is in them, in the order of their names, forbidden traits last. */
  get query(): string {
    const parameters: [string, string][] = this.policy ? [["group_policy", this.policy]] : [];
    for (const [suffix, { amounts, traits }] of this.groups) {
      const positive = [...amounts].filter(([, amount]) => amount > 0).map((each) => each.join(":"));
      const isForbidden = (trait: string) => Number(trait.startsWith("!"));
      const terms = [...traits].sort((a, b) => isForbidden(a) - isForbidden(b) || (a < b ? -1 : 1));
      if (positive.length) parameters.push([`resources${suffix}`, positive.sort().join()]);
      if (terms.length) parameters.push([`required${suffix}`, terms.join()]);
    }
    return parameters.sort(([a], [b]) => (a < b ? -1 : 1)).map((each) => each.join("=")).join("&");
  }
}

/** How many processors a mask like `0-1,3` or `^0` names; null if there are no such ones. */
function countMask(mask: string, vcpus: number): number | null {
  const [chosen, excluded] = [new Set<number>(), new Set<number>()];
  for (const part of mask.split(",")) {
    const [, sign, from = "", to = from] = /^\s*(\^?)(\d{1,5})(?:-(\d{1,5}))?\s*$/.exec(part) ?? [];
    if (!from || Number(from) > Number(to) || Number(to) >= vcpus) return null;
    for (let each = Number(from); each <= Number(to); each += 1) (sign ? excluded : chosen).add(each);
  }
  if (!chosen.size) for (let each = 0; each < vcpus; each += 1) chosen.add(each);
  excluded.forEach((each) => chosen.delete(each));
  return chosen.size && chosen.size < vcpus ? chosen.size : null;
}

/** Return the query for the JSON of a flavor, alone or with an image beside it. */
export function translate(text: string): Translation {
  let document: Document;
  try {
    document = object(JSON.parse(text));
  } catch (error) {
    return { query: "", faults: [`The JSON is not valid: ${(error as Error).message}.`], notes: [] };
  }
  const flavor = object(document["flavor"] ?? document);
  const { amounts, faults } = readAmounts(flavor);
  const image = object(document["image"]);
  const translator = new Translator(properties(flavor["extra_specs"] ?? flavor["properties"]), properties(image["properties"] ?? image));
  translator.readPlain();
  translator.readAmounts(amounts);
  translator.readOthers();
  const all = [...faults, ...translator.faults];
  if (!all.length && !translator.query.includes("resources")) all.push("The flavor has no amounts of resources.");
  return { query: all.length ? "" : translator.query, faults: all, notes: translator.notes };
}

function object(value: unknown): Document {
  return value !== null && typeof value === "object" && !Array.isArray(value) ? (value as Document) : {};
}

function readAmounts(flavor: Document): { amounts: Record<string, number>; faults: string[] } {
  const amounts: Record<string, number> = {};
  const faults: string[] = [];
  for (const [field, names] of Object.entries(AMOUNTS)) {
    const name = names.find((each) => flavor[each] !== undefined && flavor[each] !== null);
    const value = name === undefined ? "" : flavor[name];
    if (/^\d{1,15}$/.test(String(value))) amounts[field] = Number(value);
    else if (value !== "" || !OPTIONAL.has(field)) {
      faults.push(name === undefined ? `The flavor has no ${names.join(" or ")}.` : `The flavor has ${name} = ${JSON.stringify(value)}, which is no amount.`);
    }
  }
  return { amounts, faults };
}

/** Properties as a map, or as the text `k1='v1', k2='v2'`. */
function properties(value: unknown): Properties {
  if (typeof value === "string") {
    return Object.fromEntries([...value.matchAll(/([^=\s,']+)='(.*?)'(?=, [^=\s,']+='|$)/gs)].map(([, key, each]) => [key!, each!]));
  }
  return Object.fromEntries(Object.entries(object(value)).map(([key, each]) => [key, typeof each === "string" ? each : JSON.stringify(each)]));
}

/** Return the query in a text that somebody typed or pasted: a query string, an address, a command or a flavor. */
export function understand(text: string, strip: (text: string) => string): Translation {
  const said = text.trim();
  if (/^[{[]/.test(said)) return translate(said);
  const query = strip(said);
  if (!said || /(^|&)resources[A-Za-z0-9_-]*=./.test(query)) return { query, faults: [], notes: [] };
  const word = said.length > 40 ? `${said.slice(0, 40)}…` : said;
  let fault = `“${word}” contains no resources=CLASS:AMOUNT.`;
  if (/^[A-Z0-9_]+:\d+(,[A-Z0-9_]+:\d+)*$/i.test(said)) fault = `“${word}” is no query string: resources=${said.toUpperCase()} is.`;
  else if (!said.includes("=")) fault = `“${word}” is no query string. A flavor is pasted as JSON, which openstack flavor show -f json NAME prints.`;
  return { query: "", faults: [fault], notes: [] };
}
