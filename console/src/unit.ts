// Amounts for people: in suitable units, with the exact value available.

const BYTES = ["MiB", "GiB", "TiB", "PiB", "EiB"];
const BITS = ["kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"];
const NARROW = "\u202f";

interface Scale {
  units: readonly string[];
  step: number;
}

const SCALES: Record<string, Scale> = {
  MEMORY_MB: { units: BYTES, step: 1024 },
  DISK_GB: { units: BYTES.slice(1), step: 1024 },
  NET_BW_EGR_KILOBIT_PER_SEC: { units: BITS, step: 1000 },
  NET_BW_IGR_KILOBIT_PER_SEC: { units: BITS, step: 1000 },
};

/** Whether people count a class in powers of two. */
export function isBinary(resourceClass: string): boolean {
  return SCALES[resourceClass]?.step === 1024;
}

export function count(value: number): string {
  if (!Number.isFinite(value)) return "–";
  const [whole = "", part] = String(Math.round(value * 1000) / 1000).split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, NARROW);
  return part ? `${grouped}.${part}` : grouped;
}

/** An amount of a resource class: `256 GiB`. */
export function amount(resourceClass: string, value: number): string {
  const scale = SCALES[resourceClass];
  if (!scale) return count(value);
  let rest = value;
  let unit = 0;
  while (Math.abs(rest) >= scale.step && unit < scale.units.length - 1) {
    rest /= scale.step;
    unit += 1;
  }
  return `${count(significant(rest))}${NARROW}${scale.units[unit]}`;
}

/** Amounts by class, in one line: `2 VCPU, 4 GiB MEMORY_MB`. */
export function sayAmounts(amounts: Iterable<readonly [string, number]>): string {
  return [...amounts].map(([name, value]) => `${amount(name, value)} ${name}`).join(", ");
}

/** The same amount, exactly: `262 144 MEMORY_MB`. */
export function exact(resourceClass: string, value: number): string {
  return `${count(value)} ${resourceClass}`;
}

const IN_SENTENCE = /(\d+) ([A-Z][A-Z0-9_]+)\b|(instead of |total |reserved |used |\()(\d+)(?= at most| free|[,;:)]|$)/g;

/** A sentence of the service, which has exact numbers, with amounts in the units of people. */
export function inUnits(sentence: string): string {
  let last = "";
  return sentence.replace(IN_SENTENCE, (whole, number?: string, name?: string, before?: string, bare?: string) => {
    if (name) last = name;
    if (!(last in SCALES)) return whole;
    return name ? `${amount(name, Number(number))} ${name}` : `${before}${amount(last, Number(bare))}`;
  });
}

function significant(value: number): number {
  return Math.abs(value) >= 100 ? Math.round(value) : Number(value.toPrecision(3));
}

export function percent(part: number, whole: number): string {
  if (!(whole > 0)) return "–";
  const share = (100 * part) / whole;
  if (share > 0 && share < 1) return `<1${NARROW}%`;
  if (share > 99 && share < 100) return `>99${NARROW}%`;
  return `${Math.round(share)}${NARROW}%`;
}

/** What is used of a capacity: `3 of 8`; and of what, if nothing can be allocated. */
export function usedOf(resourceClass: string, used: number, capacity: number, total: number): string {
  const [taken, all] = [amount(resourceClass, used), amount(resourceClass, total)];
  if (capacity <= 0) return `${taken} used, none of ${all} can be allocated`;
  return `${taken} of ${amount(resourceClass, capacity)}`;
}

export function plural(number: number, one: string, many = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : many}`;
}

const AGES: [number, string][] = [
  [86_400, "day"],
  [3_600, "hour"],
  [60, "minute"],
];

/** How long ago a time was, in its largest unit. */
export function age(since: Date, now: Date): string {
  const seconds = Math.max(0, (now.getTime() - since.getTime()) / 1000);
  for (const [length, name] of AGES) {
    if (seconds >= length) return plural(Math.floor(seconds / length), name);
  }
  return "less than a minute";
}

/** A time by the reader's clock, with its zone. */
export function when(time: Date | string | number): string {
  return new Date(time).toLocaleString(undefined, { dateStyle: "short", timeStyle: "long" });
}

const UNSEEN = /(?<![\p{Extended_Pictographic}\ufe0f])\u200d|[\p{Cc}\p{Zl}\p{Zp}\u115f\u1160\u3164]|(?!\u200d)\p{Cf}/gu;

/** The parts of a text: what is at odd places is an invisible character, by its number. */
export function splitUnseen(text: string): string[] {
  const parts: string[] = [];
  let end = 0;
  for (const { 0: unseen, index } of text.matchAll(UNSEEN)) {
    parts.push(text.slice(end, index), `U+${unseen.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}`);
    end = index + unseen.length;
  }
  return [...parts, text.slice(end)];
}

/** A text in which every character is seen, for where there are no tags. */
export function seen(text: string): string {
  return splitUnseen(text).map((part, at) => (at % 2 ? `⟨${part}⟩` : part)).join("");
}

export function short(uuid: string): string {
  return uuid.slice(0, 8);
}

/** Whether a text is a UUID, with its dashes or without. */
export function isUuid(text: string): boolean {
  return /^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$/i.test(text);
}

/** A UUID as it is usually written, from its 32 digits. */
export function dashed(digits: string): string {
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** `host2` before `host10`. */
export const natural = new Intl.Collator("en", { numeric: true }).compare;
