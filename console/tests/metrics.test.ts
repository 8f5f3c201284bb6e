import assert from "node:assert/strict";
import { test } from "node:test";
import { parse, quantile, rate, total, type Reading } from "../src/metrics.ts";

const TEXT = (fast: number, slow: number) => `# HELP requests_total how many
# TYPE requests_total counter
requests_total{method="GET",status="200"} ${fast}
requests_total{method="PUT",status="409",path="a\\"b"} ${slow}
seconds_bucket{le="0.1"} ${fast}
seconds_bucket{le="1.0"} ${fast + slow}
seconds_bucket{le="+Inf"} ${fast + slow}
`;

const reading = (at: number, fast: number, slow: number): Reading => ({ at, samples: parse(TEXT(fast, slow)) });

test("samples have their labels", () => {
  assert.equal(parse(TEXT(1, 2))[1]!.labels["path"], 'a"b');
  assert.equal(total(reading(0, 3, 4), "requests_total"), 7);
  assert.equal(total(reading(0, 3, 4), "requests_total", ({ status }) => status === "409"), 4);
  assert.equal(total(reading(0, 3, 4), "nothing_total"), null);
});

test("a rate is a second's, also when the service began anew", () => {
  assert.equal(rate(reading(0, 10, 0), reading(5000, 60, 0), "requests_total"), 10);
  assert.equal(rate(reading(0, 100, 0), reading(5000, 50, 0), "requests_total"), 10);
});

test("a quantile lies in its bucket, of what came since", () => {
  const [before, after] = [reading(0, 1000, 1000), reading(5000, 1090, 1010)];
  assert.equal(quantile(before, before, "seconds", 0.5), null);
  assert.ok(quantile(before, after, "seconds", 0.5)! < 0.1);
  const slow = quantile(before, after, "seconds", 0.95)!;
  assert.ok(slow > 0.1 && slow < 1);
});
