import assert from "node:assert/strict";
import { test } from "node:test";
import { csv, json } from "../src/export.ts";

const LISTING = { columns: ["name", "amount"], rows: [["a,b", 1], ['say "x"', null], ["=1+1", 2]] as (string | number | null)[][] };

test("a table is CSV that no spreadsheet runs", () => {
  assert.equal(csv(LISTING), 'name,amount\r\n"a,b",1\r\n"say ""x""",\r\n\'=1+1,2\r\n');
});

test("a table is JSON with a document for each row", () => {
  assert.deepEqual(JSON.parse(json(LISTING))[2], { name: "=1+1", amount: 2 });
});
