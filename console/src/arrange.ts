// Which hosts are shown, in which groups and order, and where on the canvas each is.

import { has, type Host } from "./fleet.ts";
import { nameOf } from "./name.ts";
import type { Scale } from "./scale.ts";
import { natural, short } from "./unit.ts";

export interface Block {
  /** What its hosts have in common: the UUID of an aggregate, or the label. */
  id: string;
  label: string;
  hosts: Host[];
}

export interface Arrangement {
  group: string;
  sort: string;
}

/** `none`, `aggregate`, `prefix:2` or `trait:NAME`. */
export function arrange(
  hosts: readonly Host[],
  { group, sort }: Arrangement,
  scale: Scale,
): Block[] {
  const sorted = [...hosts];
  if (sort !== "name") {
    const sign = sort === "least" ? 1 : -1;
    const value = new Map(sorted.map((host) => [host, scale.valueOf(host) ?? -1]));
    // The hosts are sorted by name, and equal ones stay in that order.
    sorted.sort((a, b) => sign * (value.get(a)! - value.get(b)!));
  }
  const blocks = new Map<string, Block>();
  for (const host of sorted) {
    for (const id of groupsOf(host, group)) {
      const block = blocks.get(id);
      if (block) block.hosts.push(host);
      else blocks.set(id, { id, label: labelOf(id, group), hosts: [host] });
    }
  }
  const bySize = group === "aggregate";
  return [...blocks.values()].sort(
    (a, b) => (bySize ? b.hosts.length - a.hosts.length : 0) || natural(a.label, b.label),
  );
}

function labelOf(id: string, group: string): string {
  if (group !== "aggregate" || id === ALONE) return id;
  return nameOf("aggregates", id) || short(id);
}

const ALONE = "in no aggregate";

function groupsOf(host: Host, group: string): readonly string[] {
  const end = group.indexOf(":");
  const [kind, of] = end < 0 ? [group, ""] : [group.slice(0, end), group.slice(end + 1)];
  if (kind === "aggregate") {
    return host.root.aggregates.length ? host.root.aggregates : [ALONE];
  }
  if (kind === "prefix") return [prefix(host.root.name, Number(of) || 1)];
  if (kind === "trait") return [has(host, of) ? of : `without ${of}`];
  return [""];
}

/** The first parts of a name; if it has only one part, the text before its number. */
export function prefix(name: string, parts: number): string {
  const ends = [...name.matchAll(/[-_.:]+/g)].map(({ index }) => index);
  if (parts <= ends.length) return name.slice(0, ends[parts - 1]);
  const stem = name.replace(/\d+$/, "");
  return stem || name;
}

export interface Placed {
  label: string;
  hosts: Host[];
  x: number;
  y: number;
  columns: number;
}

export interface Layout {
  placed: Placed[];
  width: number;
  height: number;
  /** The size of a cell, including the gap after it. */
  pitch: { x: number; y: number };
  gap: number;
  tiles: boolean;
}

const TILE = { x: 200, y: 52 };
const MOST_TILES = 60;
const SMALLEST = 7;
const LARGEST = 44;
const LABEL = 20;
const BETWEEN = 14;
const NARROWEST = 112;

export function lay(blocks: readonly Block[], given: number, room: number): Layout {
  // A page that has no width yet must not lead to cells without any.
  const width = Math.max(given, NARROWEST);
  const number = blocks.reduce((sum, { hosts }) => sum + hosts.length, 0);
  const tiles = number <= MOST_TILES;
  const fitting = Math.floor(Math.sqrt((width * room) / Math.max(1, number)) * (blocks.length > 1 ? 0.8 : 1));
  const side = Math.min(LARGEST, Math.max(SMALLEST, fitting));
  const pitch = tiles ? { x: Math.min(TILE.x, width), y: TILE.y } : { x: side, y: side };
  const gap = tiles ? 8 : side < 10 ? 1 : 2;
  const placed = blocks.length > 1 ? shelve(blocks, width, pitch, tiles) : one(blocks, width, pitch);
  const height = placed.reduce(
    (height, { y, hosts, columns }) => Math.max(height, y + Math.ceil(hosts.length / columns) * pitch.y),
    0,
  );
  return { placed, width, height, pitch, gap, tiles };
}

type Pitch = Layout["pitch"];

function columnsIn(width: number, pitch: Pitch): number {
  return Math.max(1, Math.floor(width / pitch.x));
}

function one(blocks: readonly Block[], width: number, pitch: Pitch): Placed[] {
  return blocks.map((block) => ({ ...block, x: 0, y: 0, columns: columnsIn(width, pitch) }));
}

/** Put blocks of one width side by side, like books; a big one has its own shelf. */
function shelve(blocks: readonly Block[], width: number, pitch: Pitch, tiles: boolean): Placed[] {
  const sizes = blocks.map(({ hosts }) => hosts.length).sort((a, b) => a - b);
  const usual = sizes[Math.floor(sizes.length / 2)]!;
  const whole = columnsIn(width, pitch);
  const least = Math.max(Math.ceil(Math.sqrt(usual * 1.6)), Math.ceil(NARROWEST / pitch.x));
  const fitting = [evenly(usual, least), least].find((each) => 2 * each * pitch.x + BETWEEN <= width);
  const columns = tiles ? 1 : (fitting ?? whole);
  const placed: Placed[] = [];
  let [x, y, bottom] = [0, 0, 0];
  for (const block of blocks) {
    const isBig = block.hosts.length > 6 * Math.max(usual, columns);
    const own = isBig ? whole : columns;
    if (x > 0 && x + own * pitch.x > width) [x, y] = [0, bottom + BETWEEN];
    placed.push({ ...block, x, y: y + LABEL, columns: own });
    bottom = Math.max(bottom, y + LABEL + Math.ceil(block.hosts.length / own) * pitch.y);
    x += own * pitch.x + BETWEEN;
  }
  return placed;
}

/** How many columns leave the fewest places of the last row empty. */
function evenly(number: number, least: number): number {
  const columns = Array.from({ length: Math.ceil(least * 0.7) + 1 }, (_, more) => least + more);
  const empty = (each: number) => Math.ceil(number / each) * each - number;
  return columns.reduce((best, each) => (empty(each) < empty(best) ? each : best));
}

export interface Cell {
  block: number;
  place: number;
}

export function cellAt({ placed, pitch }: Layout, x: number, y: number): Cell | null {
  for (let block = 0; block < placed.length; block += 1) {
    const { x: left, y: top, columns, hosts } = placed[block]!;
    const column = Math.floor((x - left) / pitch.x);
    const row = Math.floor((y - top) / pitch.y);
    const place = row * columns + column;
    if (column >= 0 && column < columns && row >= 0 && place < hosts.length) {
      return { block, place };
    }
  }
  return null;
}

export function corner({ placed, pitch }: Layout, { block, place }: Cell): { x: number; y: number } {
  const { x, y, columns } = placed[block]!;
  return { x: x + (place % columns) * pitch.x, y: y + Math.floor(place / columns) * pitch.y };
}

export function hostAt({ placed }: Layout, { block, place }: Cell): Host | undefined {
  return placed[block]?.hosts[place];
}

/** The cell that an arrow key leads to. */
export function step(layout: Layout, from: Cell, key: string): Cell {
  const { placed } = layout;
  if (key === "ArrowLeft" || key === "ArrowRight") return beside(placed, from, key === "ArrowLeft" ? -1 : 1);
  const { columns, hosts } = placed[from.block]!;
  const sign = key === "ArrowUp" ? -1 : 1;
  const place = from.place + sign * columns;
  if (place >= 0 && place < hosts.length) return { ...from, place };
  return across(layout, from, sign) ?? from;
}

function beside(placed: readonly Placed[], { block, place }: Cell, sign: number): Cell {
  if (placed[block]!.hosts[place + sign]) return { block, place: place + sign };
  const next = placed[block + sign];
  if (!next) return { block, place };
  return { block: block + sign, place: sign > 0 ? 0 : next.hosts.length - 1 };
}

/** The cell of another block that is nearest above or below. */
function across(layout: Layout, from: Cell, sign: number): Cell | null {
  const at = corner(layout, from);
  let best: Cell | null = null;
  let least = Infinity;
  layout.placed.forEach((block, number) => {
    if (number === from.block || sign * (block.y - at.y) <= 0 && sign > 0) return;
    const rows = Math.ceil(block.hosts.length / block.columns);
    const row = sign > 0 ? 0 : rows - 1;
    const column = Math.min(block.columns - 1, Math.max(0, Math.round((at.x - block.x) / layout.pitch.x)));
    const place = Math.min(block.hosts.length - 1, row * block.columns + column);
    const to = corner(layout, { block: number, place });
    const ahead = sign * (to.y - at.y);
    const distance = ahead * 1000 + Math.abs(to.x - at.x);
    if (ahead > 0 && distance < least) [best, least] = [{ block: number, place }, distance];
  });
  return best;
}
