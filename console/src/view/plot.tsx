// A small plot of the last minutes.

import { count } from "../unit.ts";

export interface Line {
  name: string;
  points: { at: number; value: number | null }[];
}

const WIDTH = 320;
const HEIGHT = 90;
const MINUTES = 10;

export function Plot({ title, unit, lines }: { title: string; unit: string; lines: Line[] }) {
  const values = lines.flatMap(({ points }) => points.map(({ value }) => value ?? 0));
  const most = ceiling(Math.max(...values, 0));
  const end = Math.max(...lines.flatMap(({ points }) => points.map(({ at }) => at)), 0);
  return (
    <figure class="plot">
      <figcaption>
        <strong>{title}</strong>
        <span class="dim">{unit}</span>
        <span class="dim top-value">{count(most)}</span>
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={tell(title, unit, lines)}>
        <line class="axis" x1="0" x2={WIDTH} y1={HEIGHT - 0.5} y2={HEIGHT - 0.5} />
        <line class="grid" x1="0" x2={WIDTH} y1="0.5" y2="0.5" />
        {lines.map((line, number) => (
          <path key={line.name} class={`line-${number}`} d={draw(line, end, most)} />
        ))}
      </svg>
      <div class="plot-scale dim">
        <span>{MINUTES} minutes ago</span>
        <span>now</span>
      </div>
      <dl class="keys">
        {lines.map(({ name, points }, number) => (
          <div key={name}>
            <dt>
              <svg viewBox="0 0 20 6" aria-hidden="true">
                <path class={`line-${number}`} d="M0 3H20" />
              </svg>
              {name}
            </dt>
            <dd>{write(points.at(-1)?.value)}</dd>
          </div>
        ))}
      </dl>
    </figure>
  );
}

function write(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  return count(Number(value.toPrecision(3)));
}

function tell(title: string, unit: string, lines: readonly Line[]): string {
  const said = lines.map(({ name, points }) => `${name} ${write(points.at(-1)?.value)}`);
  return `${title}, ${unit}: ${said.join(", ")}`;
}

function ceiling(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value || 1));
  return [1, 2, 5, 10].map((factor) => factor * power).find((nice) => nice >= value)!;
}

function draw({ points }: Line, end: number, most: number): string {
  const x = (at: number) => WIDTH - ((end - at) / (MINUTES * 60_000)) * WIDTH;
  const y = (value: number) => HEIGHT - 1 - (value / most) * (HEIGHT - 3);
  let pen = "M";
  const steps: string[] = [];
  for (const { at, value } of points) {
    // Nothing was observed: the line has a gap there.
    if (value === null) pen = "M";
    else {
      steps.push(`${pen}${x(at).toFixed(1)} ${y(value).toFixed(1)}`);
      if (pen === "M") steps.push("h0.01");
      pen = "L";
    }
  }
  return steps.join("");
}
