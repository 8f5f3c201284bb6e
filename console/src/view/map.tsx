// The fleet on a canvas: only what is visible is drawn, so that its size does not matter.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { cellAt, corner, hostAt, lay, step, type Block, type Cell, type Layout } from "../arrange.ts";
import type { Host } from "../fleet.ts";
import { address, go, leftBehind, parse } from "../route.ts";
import { ramp, type Scale } from "../scale.ts";
import { count, percent, seen, usedOf } from "../unit.ts";

const DARK = matchMedia("(prefers-color-scheme: dark)");
const STOPS = ["--ramp-low", "--ramp-middle", "--ramp-high"];
// Cells that are smaller than this show only a colour, not a level.
const LEVEL = 15;

interface Mapped {
  blocks: Block[];
  scale: Scale;
  named: string;
  /** When hosts have just changed, by UUID of the root. */
  changed: ReadonlyMap<string, Date>;
  /** The roots that schedulers leave out. */
  disabled: ReadonlySet<string>;
}

export function FleetMap({ blocks, scale, named, changed, disabled }: Mapped) {
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  // The fleet changes while it is looked at: the pointer and the keys stay with their hosts.
  const [pointed, setPointed] = useState<Mark | null>(null);
  const [reached, setReached] = useState<Mark | null>(leftBehindHost);
  useLayoutEffect(() => {
    const measure = () => setWidth(frame.current!.clientWidth);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(frame.current!);
    return () => observer.disconnect();
  }, []);
  const layout = useMemo(
    () => lay(blocks, width, Math.max(320, innerHeight - top(frame.current) - 40)),
    [blocks, width],
  );
  const hovered = useMemo(() => cellOf(layout, pointed), [layout, pointed]);
  const walked = useMemo(() => cellOf(layout, reached), [layout, reached]);
  const setHovered = (cell: Cell | null) => setPointed(markOf(layout, cell));
  const setWalked = (cell: Cell | null) => setReached(markOf(layout, cell));
  useLayoutEffect(() => {
    // Back from a host: the keys go on where they were.
    if (width && walked) frame.current!.focus({ preventScroll: true });
    else if (width) setWalked(null);
  }, [width > 0]);
  const cell = hovered ?? walked;
  const host = cell && hostAt(layout, cell);
  usePainting(frame, canvas, { layout, scale, changed, disabled, chosen: cell });

  const open = (target: Cell | null) => {
    const chosen = target && hostAt(layout, target);
    if (chosen) go(address("host", chosen.root.uuid));
  };
  const at = (event: MouseEvent): Cell | null => {
    const box = frame.current!.getBoundingClientRect();
    return cellAt(layout, event.clientX - box.left, event.clientY - box.top);
  };
  const press = (event: KeyboardEvent) => {
    if (event.key === "Enter") open(walked);
    else if (event.key === "Escape") setWalked(null);
    else if (event.key === "Home") setWalked({ block: 0, place: 0 });
    else if (event.key === "End") setWalked(last(layout));
    else if (event.key.startsWith("Arrow")) setWalked(walked ? step(layout, walked, event.key) : { block: 0, place: 0 });
    else return;
    event.preventDefault();
    setHovered(null);
  };
  useEffect(() => {
    if (walked) reveal(frame.current!, corner(layout, walked).y, layout.pitch.y);
  }, [walked]);
  return (
    <div
      class="map"
      ref={frame}
      tabIndex={0}
      role="application"
      aria-roledescription="map of hosts"
      aria-label={`${named}, coloured by ${scale.title}. Arrow keys move, Enter opens a host.`}
      style={{ height: `${Math.max(layout.height, 1)}px` }}
      onKeyDown={press}
      onBlur={() => setWalked(null)}
    >
      <canvas
        ref={canvas}
        onMouseMove={(event) => setHovered(at(event))}
        onMouseLeave={() => setHovered(null)}
        onClick={(event) => open(at(event))}
        style={{ cursor: hovered ? "pointer" : "default" }}
      />
      {cell && host && <Tip host={host} scale={scale} at={changed.get(host.root.uuid)} isDisabled={disabled.has(host.root.uuid)} {...beside(layout, cell)} />}
      <span class="hidden" role="status">
        {walked && host ? `${host.root.name}: ${scale.tell(host)}${disabled.has(host.root.uuid) ? ", disabled" : ""}` : ""}
      </span>
    </div>
  );
}

function top(frame: HTMLElement | null): number {
  return frame ? frame.getBoundingClientRect().top + scrollY : 0;
}

/** A host, and the cell that it had when it was marked. */
interface Mark {
  uuid: string;
  cell: Cell;
}

/** The host that the reader has just come back from. */
function leftBehindHost(): Mark | null {
  const { view, id } = parse(leftBehind());
  return view === "host" ? { uuid: id, cell: { block: 0, place: 0 } } : null;
}

function markOf(layout: Layout, cell: Cell | null): Mark | null {
  const host = cell && hostAt(layout, cell);
  return host ? { uuid: host.root.uuid, cell } : null;
}

/** The cell that a host has now: the one in which it was marked if it is still there. */
function cellOf(layout: Layout, mark: Mark | null): Cell | null {
  if (!mark) return null;
  if (hostAt(layout, mark.cell)?.root.uuid === mark.uuid) return mark.cell;
  for (let block = 0; block < layout.placed.length; block += 1) {
    const place = layout.placed[block]!.hosts.findIndex(({ root }) => root.uuid === mark.uuid);
    if (place >= 0) return { block, place };
  }
  return null;
}

function last({ placed }: Layout): Cell {
  const block = placed.length - 1;
  return { block, place: (placed[block]?.hosts.length ?? 1) - 1 };
}

function reveal(frame: HTMLElement, y: number, height: number): void {
  const from = frame.getBoundingClientRect().top + y;
  if (from < 8) scrollBy(0, from - 60);
  else if (from + height > innerHeight - 8) scrollBy(0, from + height - innerHeight + 60);
}

const TIP = 250;

function beside(layout: Layout, cell: Cell): { x: number; y: number; left: boolean } {
  const { x, y } = corner(layout, cell);
  const left = x + layout.pitch.x + TIP > layout.width && x > layout.width / 2;
  return { x: left ? x - 6 : Math.min(x + layout.pitch.x + 6, layout.width - 160), y, left };
}

const MOST_LINES = 8;

interface Told {
  host: Host;
  scale: Scale;
  /** When it changed, if it just has. */
  at: Date | undefined;
  x: number;
  y: number;
  left: boolean;
  isDisabled: boolean;
}

function Tip({ host, scale, at, isDisabled, x, y, left }: Told) {
  const sums = [...host.sums];
  return (
    <div class={left ? "tip tip-left" : "tip"} style={{ left: `${x}px`, top: `${y}px` }} aria-hidden="true">
      <strong>
        <bdi>{seen(host.root.name)}</bdi>
      </strong>
      <p>{scale.tell(host)}</p>
      {isDisabled && <p>disabled</p>}
      {at && <p>changed at {at.toLocaleTimeString()}</p>}
      <table>
        {sums.slice(0, MOST_LINES).map(([name, sum]) => (
          <tr key={name}>
            <td>{name}</td>
            <td class="number">{usedOf(name, sum.used, sum.capacity, sum.total)}</td>
            <td class="number">{percent(sum.used, sum.capacity)}</td>
          </tr>
        ))}
      </table>
      {sums.length > MOST_LINES && <p class="dim">and {count(sums.length - MOST_LINES)} classes more</p>}
      {host.providers.length > 1 && <p class="dim">{count(host.providers.length)} providers</p>}
    </div>
  );
}

type Ref<T> = { current: T | null };

interface Picture {
  layout: Layout;
  scale: Scale;
  changed: ReadonlyMap<string, Date>;
  disabled: ReadonlySet<string>;
  chosen: Cell | null;
}

/** Draw when something changed, and when other cells become visible. */
function usePainting(
  frame: Ref<HTMLElement>,
  canvas: Ref<HTMLCanvasElement>,
  picture: Picture,
): void {
  useLayoutEffect(() => {
    let asked = 0;
    const paint = () => {
      asked = 0;
      if (frame.current && canvas.current && frame.current.clientWidth) {
        new Painter(frame.current, canvas.current, picture).paint();
      }
    };
    const later = () => (asked ||= requestAnimationFrame(paint));
    paint();
    addEventListener("scroll", later, { passive: true });
    addEventListener("resize", later);
    DARK.addEventListener("change", later);
    return () => {
      cancelAnimationFrame(asked);
      removeEventListener("scroll", later);
      removeEventListener("resize", later);
      DARK.removeEventListener("change", later);
    };
  }, Object.values(picture));
}

class Painter {
  private readonly layout: Layout;
  private readonly scale: Scale;
  private readonly changed: Picture["changed"];
  private readonly disabled: Picture["disabled"];
  private readonly chosen: Cell | null;
  private readonly context: CanvasRenderingContext2D;
  private readonly style: CSSStyleDeclaration;
  private readonly colours: string[];
  private readonly from: number;
  private readonly to: number;

  constructor(
    frame: HTMLElement,
    private readonly canvas: HTMLCanvasElement,
    { layout, scale, changed, disabled, chosen }: Picture,
  ) {
    [this.layout, this.scale, this.changed, this.disabled, this.chosen] = [layout, scale, changed, disabled, chosen];
    this.context = canvas.getContext("2d")!;
    this.style = getComputedStyle(frame);
    this.colours = ramp(STOPS.map((name) => this.named(name)));
    this.from = Math.min(Math.max(0, -frame.getBoundingClientRect().top), layout.height);
    this.to = Math.min(layout.height, this.from + innerHeight);
  }

  paint(): void {
    const { canvas, context, from, to } = this;
    const [width, height] = [this.layout.width, Math.ceil(to - from)];
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    canvas.style.top = `${from}px`;
    canvas.width = width * devicePixelRatio;
    canvas.height = height * devicePixelRatio;
    context.scale(devicePixelRatio, devicePixelRatio);
    context.translate(0, -from);
    context.textBaseline = "alphabetic";
    this.layout.placed.forEach((_, block) => this.paintBlock(block));
    if (this.chosen) this.outline(this.chosen);
  }

  private paintBlock(block: number): void {
    const { placed, pitch } = this.layout;
    const { label, hosts, x, y, columns } = placed[block]!;
    const rows = Math.ceil(hosts.length / columns);
    if (y - 24 > this.to || y + rows * pitch.y < this.from) return;
    if (label) {
      this.write(label, x, y - 6, columns * pitch.x - 40, "--text");
      this.write(count(hosts.length), x + columns * pitch.x - 4, y - 6, 40, "--dim", "right");
    }
    const first = Math.max(0, Math.floor((this.from - y) / pitch.y)) * columns;
    const end = Math.min(hosts.length, (Math.floor((this.to - y) / pitch.y) + 1) * columns);
    for (let place = first; place < end; place += 1) {
      const at = corner(this.layout, { block, place });
      if (this.layout.tiles) this.paintTile(hosts[place]!, at.x, at.y);
      else this.paintCell(hosts[place]!, at.x, at.y);
      if (this.disabled.size && this.disabled.has(hosts[place]!.root.uuid)) this.cross(at.x, at.y);
      if (this.changed.size && this.changed.has(hosts[place]!.root.uuid)) this.notice(at.x, at.y);
    }
  }

  private paintCell(host: Host, x: number, y: number): void {
    const { pitch, gap } = this.layout;
    const [width, height] = [pitch.x - gap, pitch.y - gap];
    const shade = this.scale.shadeOf(host);
    if (shade === null) this.strike(x, y, width, height);
    else if (width < LEVEL) this.fill(this.colour(shade), x, y, width, height);
    else {
      const level = shade > 0 ? Math.max(1, Math.round(shade * height)) : 0;
      this.fill(this.named("--cell"), x, y, width, height);
      this.fill(this.colour(shade), x, y + height - level, width, level);
    }
    if (this.scale.isOver(host)) this.mark(x, y, width, height);
  }

  /** Mark a cell of which more is used than there is, by shape as well as by colour. */
  private mark(x: number, y: number, width: number, height: number): void {
    const { context } = this;
    const side = Math.max(5, Math.min(width, height) / 2);
    context.fillStyle = this.named("--bad");
    context.beginPath();
    context.moveTo(x + width - side, y);
    context.lineTo(x + width, y);
    context.lineTo(x + width, y + side);
    context.closePath();
    context.fill();
    context.strokeStyle = this.named("--bad");
    context.lineWidth = 1;
    context.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
  }

  /** Mark a disabled cell: a cross at its foot, on a ground of its own. */
  private cross(x: number, y: number): void {
    const { context } = this;
    const { pitch, gap } = this.layout;
    const [width, height] = [pitch.x - gap, pitch.y - gap];
    const side = Math.min(9, width - 2, height - 2);
    const [left, top] = [x + width - side - 1, y + height - side - 1];
    this.fill(this.named("--back"), left - 1, top - 1, side + 2, side + 2);
    context.strokeStyle = this.named("--text");
    context.lineWidth = 1.5;
    context.beginPath();
    for (const [from, to] of [[left, left + side], [left + side, left]] as const) {
      context.moveTo(from, top);
      context.lineTo(to, top + side);
    }
    context.stroke();
  }

  /** Mark a cell that has just changed: a dashed frame, and a dot. */
  private notice(x: number, y: number): void {
    const { context } = this;
    const { pitch, gap } = this.layout;
    context.strokeStyle = context.fillStyle = this.named("--text");
    context.lineWidth = 1.5;
    context.setLineDash([3, 2]);
    context.strokeRect(x + 0.5, y + 0.5, pitch.x - gap - 1, pitch.y - gap - 1);
    context.setLineDash([]);
    context.beginPath();
    context.arc(x + 3, y + 3, 2.5, 0, 2 * Math.PI);
    context.fill();
  }

  private paintTile(host: Host, x: number, y: number): void {
    const { pitch, gap } = this.layout;
    const [width, height] = [pitch.x - gap, pitch.y - gap];
    const shade = this.scale.shadeOf(host);
    this.fill(this.named("--raised"), x, y, width, height);
    this.write(seen(host.root.name), x + 8, y + 16, width - 16, "--text");
    this.write(this.scale.tell(host), x + 8, y + 31, width - 16, "--dim");
    if (shade === null) return;
    this.fill(this.named("--cell"), x, y + height - 6, width, 6);
    this.fill(this.colour(Math.max(0.5, shade)), x, y + height - 6, width * shade, 6);
    if (this.scale.isOver(host)) this.mark(x, y, width, height);
  }

  private colour(shade: number): string {
    return this.colours[Math.round(shade * 100)]!;
  }

  private named(name: string): string {
    return this.style.getPropertyValue(name);
  }

  private fill(colour: string, x: number, y: number, width: number, height: number): void {
    this.context.fillStyle = colour;
    this.context.fillRect(x, y, width, height);
  }

  /** Cells to which the scale does not apply are crossed out, not coloured. */
  private strike(x: number, y: number, width: number, height: number): void {
    const { context } = this;
    context.strokeStyle = this.named("--line-strong");
    context.lineWidth = 1;
    context.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
    context.beginPath();
    context.moveTo(x, y + height);
    context.lineTo(x + width, y);
    context.stroke();
  }

  private outline(cell: Cell): void {
    const { pitch, gap } = this.layout;
    const { x, y } = corner(this.layout, cell);
    this.context.strokeStyle = this.named("--text");
    this.context.lineWidth = 2;
    this.context.strokeRect(x - 1, y - 1, pitch.x - gap + 2, pitch.y - gap + 2);
  }

  private write(
    text: string,
    x: number,
    y: number,
    width: number,
    colour: string,
    align: CanvasTextAlign = "left",
  ): void {
    const { context } = this;
    context.font = `12px ${this.style.fontFamily}`;
    context.textAlign = align;
    context.fillStyle = this.named(colour);
    context.fillText(cut(context, text, width), x, y);
  }
}

/** Shorten a text that is too long in the middle: names differ at their ends. */
function cut(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  const letters = [...text];
  let kept = Math.min(letters.length - 1, 80);
  while (kept > 2) {
    const half = Math.ceil(kept / 2);
    const short = `${letters.slice(0, half).join("")}…${letters.slice(half - kept).join("")}`;
    if (context.measureText(short).width <= width) return short;
    kept -= 1;
  }
  return "…";
}
