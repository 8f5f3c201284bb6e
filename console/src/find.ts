// The field that finds hosts: words and `trait:`, `class:`, `aggregate:`, `project:`,
// with and, or, not and parentheses; a blank means and.

import type { Host } from "./fleet.ts";
import { nameOf, type Named } from "./name.ts";
import { browser } from "./storage.ts";
import type { Part } from "./wire.ts";

export interface Found {
  test: (host: Host) => boolean;
  /** What must have been read before it can be answered. */
  parts: Part[];
  /** Why the text is not understood; empty if it is. */
  fault: string;
}

type Test = Found["test"];

const TESTS: Record<string, (value: string) => Test> = {
  name: (value) => (host) => host.providers.some(({ name }) => name.toLowerCase().includes(value)),
  uuid: (value) => (host) => host.providers.some(({ uuid }) => uuid.startsWith(value)),
  trait: (value) => (host) => host.providers.some(({ traits }) => traits.some((each) => matches(each, value))),
  class: (value) => (host) => host.providers.some(({ inventories }) => Object.keys(inventories).some((each) => matches(each, value))),
  aggregate: (value) => (host) => host.providers.some(({ aggregates }) => aggregates.some((each) => each.startsWith(value) || isNamed("aggregates", each, value))),
  project: (value) => (host) =>
    host.providers.some(({ allocations }) => allocations.some(({ project }) => matches(project, value) || isNamed("projects", project, value))),
};
const PARTS: Record<string, Part> = { trait: "traits", project: "consumers" };

/** The whole name, or its beginning if the value ends with a star. */
function matches(name: string, value: string): boolean {
  const low = name.toLowerCase();
  return value.endsWith("*") ? low.startsWith(value.slice(0, -1)) : low === value;
}

function isNamed(kind: Named, id: string, value: string): boolean {
  const name = nameOf(kind, id);
  return name !== "" && matches(name, value);
}

const TOKEN = /\s*(?:([()])|((?:[a-z]+:)?)"([^"]*)"|([^\s()"]+))/giy;

interface Token {
  text: string;
  isQuoted: boolean;
}

function tokens(text: string): Token[] {
  const found: Token[] = [];
  TOKEN.lastIndex = 0;
  while (text.slice(TOKEN.lastIndex).trim()) {
    const match = TOKEN.exec(text);
    if (!match) throw new Error("a quotation mark is missing");
    const [, bracket, kind = "", quoted, word = ""] = match;
    found.push({ text: bracket ?? (quoted === undefined ? word : kind + quoted), isQuoted: quoted !== undefined });
  }
  return found;
}

class Parser {
  readonly parts = new Set<Part>();
  private at = 0;

  constructor(private readonly tokens: readonly Token[]) {}

  whole(): Test {
    const test = this.either();
    if (this.at < this.tokens.length) throw new Error(`“${this.tokens[this.at]!.text}” is not expected`);
    return test;
  }

  private next(): string {
    const token = this.tokens[this.at];
    return token && !token.isQuoted ? token.text.toLowerCase() : "";
  }

  private either(): Test {
    let test = this.both();
    while (this.next() === "or") {
      this.at += 1;
      const [left, right] = [test, this.both()];
      test = (host) => left(host) || right(host);
    }
    return test;
  }

  private both(): Test {
    let test = this.one();
    while (this.at < this.tokens.length && this.next() !== "or" && this.next() !== ")") {
      if (this.next() === "and") this.at += 1;
      const [left, right] = [test, this.one()];
      test = (host) => left(host) && right(host);
    }
    return test;
  }

  private one(): Test {
    const token = this.tokens[this.at];
    if (!token) throw new Error("something is missing at the end");
    const word = this.next();
    if (word === ")" || word === "and" || word === "or") throw new Error(`something is missing before “${token.text}”`);
    this.at += 1;
    if (word === "not") {
      const test = this.one();
      return (host) => !test(host);
    }
    if (word === "(") {
      const test = this.either();
      if (this.next() !== ")") throw new Error("a parenthesis is not closed");
      this.at += 1;
      return test;
    }
    return this.term(token.text);
  }

  private term(text: string): Test {
    const end = text.indexOf(":");
    const kind = end > 0 ? text.slice(0, end).toLowerCase() : "name";
    // Names may have colons, too.
    if (!Object.hasOwn(TESTS, kind)) return TESTS["name"]!(text.toLowerCase());
    const part = PARTS[kind];
    if (part) this.parts.add(part);
    return TESTS[kind]!((end > 0 ? text.slice(end + 1) : text).toLowerCase());
  }
}

export function parseFind(text: string): Found {
  if (!text.trim()) return { test: () => true, parts: [], fault: "" };
  try {
    const parser = new Parser(tokens(text));
    return { test: parser.whole(), parts: [...parser.parts], fault: "" };
  } catch (error) {
    return { test: () => false, parts: [], fault: (error as Error).message };
  }
}

/** Return what finds names with a text in them, also if it has parentheses or is a word like `or`. */
export function inNames(text: string): string {
  const isPlain = /^[^\s():]+$/.test(text) && !/^(and|or|not)$/i.test(text);
  // Within quotation marks, there can be none.
  return isPlain || text.includes('"') ? text : `name:"${text}"`;
}

// Searches that are saved by name, in this browser.

const KEY = "placement-searches";

export function saved(): Record<string, string> {
  return Object(browser.read(KEY)) as Record<string, string>;
}

/** Save a search; an empty one is removed. Return whether the browser had room for it. */
export function save(name: string, text: string): boolean {
  const { [name]: _, ...others } = saved();
  const next = text ? { ...others, [name]: text } : others;
  return browser.put(KEY, Object.keys(next).length ? JSON.stringify(next) : null);
}
