import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "../src/metrics.ts";
import { evaluate, reduce } from "../src/panel.ts";

const reading = (at: number, many: number) => ({
  at,
  samples: parse(`
placement_requests_total{operation="/a",method="GET",status="200"} ${many}
placement_requests_total{operation="/allocation_candidates",method="GET",status="200"} ${2 * many}
placement_requests_total{operation="/b",method="PUT",status="409"} ${many}
placement_request_duration_seconds_bucket{operation="/a",le="0.01"} ${many}
placement_request_duration_seconds_bucket{operation="/a",le="+Inf"} ${many}
placement_request_duration_seconds_bucket{operation="/ledger/v1/changes",le="0.01"} 0
placement_request_duration_seconds_bucket{operation="/ledger/v1/changes",le="+Inf"} ${9 * many}
process_cpu_seconds_total ${many}
`),
});

test("a reading that is kept tells the same as the whole", () => {
  const [before, after] = [reading(0, 100), reading(10_000, 400)];
  assert.deepEqual(evaluate(reduce(before), reduce(after)), evaluate(before, after));
  assert.equal(evaluate(before, after)[0], 120);
  // Those that wait for changes do not count as slow.
  assert.ok(evaluate(before, after)[3]! <= 10);
  assert.ok(reduce(after).samples.length < after.samples.length);
});
