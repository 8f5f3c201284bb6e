// A small plot of values over time.

import { count } from "../unit.ts";

export interface Line {
  name: string;
  points: { at: number; value: number | null }[];
  /** Values of earlier times, to compare with. */
  before?: (number | null)[];
}

interface Plotted {
  title: string;
  unit: string;
  lines: Line[];
  /** The times at both ends, and their names. */
  from: number;
  to: number;
  ends: [string, string];
  write?: (value: number) => string;
  /** Whether people count what it shows in powers of two. */
  binary?: boolean;
  /** The names of the earlier times. */
  earlier?: string[];
}

const WIDTH = 320;
const HEIGHT = 90;

export function Plot({ title, unit, lines, from, to, ends, write = plain, binary = false, earlier = [] }: Plotted) {
  const highest = lines.reduce((most, { points }) => points.reduce((more, { value }) => Math.max(more, value ?? 0), most), 0);
  const most = binary ? 2 ** Math.ceil(Math.log2(highest || 1)) : ceiling(highest);
  const say = (value: number | null | undefined) => (value === null || value === undefined ? "–" : write(value));
  const told = lines.map(({ name, points }) => `${name} ${say(points.at(-1)?.value)}`);
  return (
    <figure class="plot">
      <figcaption>
        <strong>{title}</strong>
        <span class="dim">{unit}</span>
        <span class="dim top-value">{write(most)}</span>
      </figcaption>
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${title}, ${unit}: ${told.join(", ")}`}
      >
        <line class="axis" x1="0" x2={WIDTH} y1={HEIGHT - 0.5} y2={HEIGHT - 0.5} />
        <line class="grid" x1="0" x2={WIDTH} y1="0.5" y2="0.5" />
        {lines.map((line, number) => (
          <path key={line.name} class={`line-${number}`} d={draw(line, from, to, most)} />
        ))}
      </svg>
      <div class="plot-scale dim">
        <span>{ends[0]}</span>
        <span>{ends[1]}</span>
      </div>
      <dl class="keys">
        {lines.map(({ name, points, before = [] }, number) => (
          <div key={name}>
            <dt>
              <svg viewBox="0 0 20 6" aria-hidden="true">
                <path class={`line-${number}`} d="M0 3H20" />
              </svg>
              {name}
            </dt>
            <dd>{say(points.at(-1)?.value)}</dd>
            {earlier.map((when, place) => (
              <dd key={when} class="dim earlier">
                {when} {say(before[place])}
              </dd>
            ))}
          </div>
        ))}
      </dl>
    </figure>
  );
}

function plain(value: number): string {
  return count(Number(value.toPrecision(3)));
}

function ceiling(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value || 1));
  return [1, 2, 5, 10].map((factor) => factor * power).find((nice) => nice >= value)!;
}

function draw({ points }: Line, from: number, to: number, most: number): string {
  const x = (at: number) => ((at - from) / (to - from)) * WIDTH;
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
