import assert from "node:assert/strict";
import { test } from "node:test";
import { age, amount, dashed, exact, inUnits, seen, natural, percent, usedOf } from "../src/unit.ts";

const plain = (text: string) => text.replaceAll("\u202f", " ");

test("a UUID has its dashes", () => {
  assert.equal(dashed("6f3d3c1a90a24b4e8e0e0d4f6a1f7b01"), "6f3d3c1a-90a2-4b4e-8e0e-0d4f6a1f7b01");
});

test("amounts are in units that people use", () => {
  assert.equal(plain(amount("MEMORY_MB", 512)), "512 MiB");
  assert.equal(plain(amount("MEMORY_MB", 262_144)), "256 GiB");
  assert.equal(plain(amount("DISK_GB", 100_000)), "97.7 TiB");
  assert.equal(plain(amount("NET_BW_EGR_KILOBIT_PER_SEC", 25_000_000)), "25 Gbit/s");
  assert.equal(plain(amount("VCPU", 640_000)), "640 000");
  assert.equal(plain(exact("MEMORY_MB", 262_144)), "262 144 MEMORY_MB");
});

test("a little is not nothing, and almost all is not all", () => {
  assert.equal(plain(percent(1, 1000)), "<1 %");
  assert.equal(plain(percent(999, 1000)), ">99 %");
  assert.equal(plain(percent(1, 2)), "50 %");
  assert.equal(percent(1, 0), "–");
});

test("nothing of a capacity is said with what it is nothing of", () => {
  assert.equal(plain(usedOf("VCPU", 3, 8, 10)), "3 of 8");
  assert.equal(plain(usedOf("VCPU", 9, 8, 8)), "9 of 8");
  assert.equal(plain(usedOf("MEMORY_MB", 0, 0, 4096)), "0 MiB used, none of 4 GiB can be allocated");
});

test("ages are in their largest unit", () => {
  const now = new Date("2026-11-21T12:00:00Z");
  assert.equal(age(new Date("2026-11-19T11:00:00Z"), now), "2 days");
  assert.equal(age(new Date("2026-11-21T11:00:00Z"), now), "1 hour");
  assert.equal(age(new Date("2026-11-21T12:00:00Z"), now), "less than a minute");
});

test("names are sorted as people count", () => {
  assert.deepEqual(["host10", "host2"].sort(natural), ["host2", "host10"]);
});

test("sentences of the service have the units of people", () => {
  const said = (text: string) => inUnits(text).replaceAll("\u202f", " ");
  assert.equal(
    said("has less than 999999 MEMORY_MB free on one provider (540672 free: total 1048576, reserved 16384, allocation_ratio 1, used 491520)"),
    "has less than 977 GiB MEMORY_MB free on one provider (528 GiB free: total 1 TiB, reserved 16 GiB, allocation_ratio 1, used 480 GiB)",
  );
  assert.equal(
    said("ask for 64 VCPU instead of 120 and 540672 MEMORY_MB instead of 999999: 3 hosts serve"),
    "ask for 64 VCPU instead of 120 and 528 GiB MEMORY_MB instead of 977 GiB: 3 hosts serve",
  );
  assert.equal(said("the 20 others have less than 2048 DISK_GB free (1024 at most), 12 are in no aggregate"), "the 20 others have less than 2 TiB DISK_GB free (1 TiB at most), 12 are in no aggregate");
});

test("invisible characters are shown by their number", () => {
  assert.equal(seen("a\u202eb\u200bc\u0007"), "a⟨U+202E⟩b⟨U+200B⟩c⟨U+0007⟩");
  assert.equal(seen("größe 👩\u200d💻 שלום"), "größe 👩\u200d💻 שלום");
});
