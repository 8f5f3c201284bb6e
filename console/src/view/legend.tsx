// What the colours mean, and how many hosts have each: a histogram that also filters.

import { useMemo } from "preact/hooks";
import type { Host } from "../fleet.ts";
import { change } from "../route.ts";
import type { Scale } from "../scale.ts";
import { count, plural } from "../unit.ts";

interface Shown {
  scale: Scale;
  hosts: readonly Host[];
  /** The ids of bins. */
  chosen: readonly string[];
}

export function Legend({ scale, hosts, chosen }: Shown) {
  const numbers = useMemo(() => {
    const numbers = scale.bins.map(() => 0);
    for (const host of hosts) numbers[scale.binOf(host)]! += 1;
    return numbers;
  }, [scale, hosts]);
  const most = Math.max(1, ...numbers);
  const toggle = (id: string) => {
    const next = scale.bins.map((bin) => bin.id).filter((each) => chosen.includes(each) !== (each === id));
    change({ bins: next.join() || null });
  };
  return (
    <section class="legend" aria-label={`Hosts by ${scale.title}`}>
      <ol>
        {scale.bins.map(({ id, label, shade, over }, bin) =>
          (shade === null || over) && !numbers[bin] && !chosen.includes(id) ? null : (
            <li key={id}>
              <button
                type="button"
                aria-pressed={chosen.includes(id)}
                disabled={!numbers[bin] && !chosen.includes(id)}
                title={`${plural(numbers[bin]!, "host")}: ${scale.title} ${label}`}
                onClick={() => toggle(id)}
              >
                <span class="column" aria-hidden="true">
                  <span style={{ height: `${numbers[bin] ? Math.max(4, (100 * numbers[bin]!) / most) : 0}%` }} />
                </span>
                <span class={over ? "swatch over" : shade === null ? "swatch struck" : `swatch shade-${Math.round(shade * 10)}`} aria-hidden="true" />
                <span class="bin-label">{label}</span>
                <span class="bin-count">{count(numbers[bin]!)}</span>
              </button>
            </li>
          ),
        )}
      </ol>
    </section>
  );
}
