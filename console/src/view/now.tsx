// Now: what the service does, from the difference between readings of `/metrics`.

import { useEffect } from "preact/hooks";
import { isKnown, total } from "../metrics.ts";
import { PANELS, REQUESTS, type Panel } from "../panel.ts";
import { again, earlier, EVERY_SECONDS, readings, watch, type Point } from "../poll.ts";
import { useSource } from "../source.ts";
import { count } from "../unit.ts";
import { Failed, Loading } from "./part.tsx";
import { Old } from "./reading.tsx";
import { Plot, type Line } from "./plot.tsx";

const MINUTES = 10;
const HOUR = 3_600_000;
const EARLIER: [string, number][] = [
  ["1 h ago", HOUR],
  ["1 d ago", 24 * HOUR],
];

export function NowView() {
  const { points, slots, last, failure } = useSource(readings);
  useEffect(watch, []);
  if (!last && failure?.status === 404) return <Off />;
  if (!last && failure) return <Failed failure={failure} retry={again} />;
  if (!last) return <Loading what="the metrics" />;
  const known = PANELS.filter(({ needs }) => isKnown(last, needs));
  const before = EARLIER.flatMap(([name, ago]) => {
    const point = earlier(slots, last.at - ago);
    return point ? [{ name, point }] : [];
  });
  return (
    <>
      {failure && <Old what="the service" moment={new Date(last.at)} failure={failure} again={again} />}
      {!known.length && <p class="state">The service reports no metrics that the console knows.</p>}
      <div class="panels">
        {known.map((panel) => (
          <PanelView key={panel.title} panel={panel} points={points} before={before} to={last.at} />
        ))}
      </div>
      {known.length > 0 && (
        <p class="dim">
          Read every {EVERY_SECONDS} seconds, also while other views are shown; {count(total(last, REQUESTS) ?? 0)} requests since the
          service began. The times are without requests that wait for changes. The browser keeps means of five minutes for a day.
        </p>
      )}
    </>
  );
}

function Off() {
  return (
    <p class="state">
      The service reports no metrics. <code>[metrics] enabled = true</code> in its configuration switches them on.
    </p>
  );
}

interface PanelOf {
  panel: Panel;
  points: readonly Point[];
  /** What there was at earlier times, as far as that is known. */
  before: { name: string; point: Point }[];
  to: number;
}

function PanelView({ panel, points, before, to }: PanelOf) {
  const first = PANELS.slice(0, PANELS.indexOf(panel)).reduce((sum, { lines }) => sum + lines.length, 0);
  const lines: Line[] = panel.lines.map(([name], number) => ({
    name,
    points: points.map(({ at, values }) => ({ at, value: values[first + number] ?? null })),
    before: before.map(({ point }) => point.values[first + number] ?? null),
  }));
  return (
    <Plot
      title={panel.title}
      unit={panel.unit}
      lines={lines}
      from={to - MINUTES * 60_000}
      to={to}
      ends={[`${MINUTES} minutes ago`, "now"]}
      earlier={before.map(({ name }) => name)}
    />
  );
}
