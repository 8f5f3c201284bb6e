import assert from "node:assert/strict";
import { test } from "node:test";
import { csv, json, type Value } from "../src/export.ts";

/** The lines of a table with one column. */
function lines(...values: Value[]): string[] {
  return csv({ columns: ["x"], rows: values.map((each) => [each]) }).split("\r\n").slice(1, -1);
}

test("what CSV would take for its own is quoted", () => {
  assert.deepEqual(lines("a,b", 'say "x"', "a\nb", "a\r", "a b"), ['"a,b"', '"say ""x"""', '"a\nb"', '"a\r"', "a b"]);
  assert.equal(csv({ columns: ["a,b", "c"], rows: [] }), '"a,b",c\r\n');
});

test("text never begins like a formula, and a number is one", () => {
  assert.deepEqual(lines("=1", "+1", "-1", "@x", "\tx", "a=1"), ["'=1", "'+1", "'-1", "'@x", "'\tx", "a=1"]);
  assert.deepEqual(lines("\n=1", '="x"'), ['"\'\n=1"', '"\'=""x"""']);
  assert.deepEqual(lines(-1, 0.5, 12345678901), ["-1", "0.5", "12345678901"]);
});

test("nothing is an empty cell", () => {
  assert.deepEqual(lines(null, "", Infinity), ["", "", ""]);
});

test("characters stay as they are", () => {
  assert.deepEqual(lines("größe 😀", "\u202eabc", "日本"), ["größe 😀", "\u202eabc", "日本"]);
});

test("a table is JSON with a document for each row", () => {
  const rows = [["a,b", 1], ['say "größe 😀"', null], ["=1+1", Infinity]] as Value[][];
  assert.deepEqual(JSON.parse(json({ columns: ["name", "amount"], rows })), [
    { name: "a,b", amount: 1 },
    { name: 'say "größe 😀"', amount: null },
    { name: "=1+1", amount: null },
  ]);
});
