import assert from "node:assert/strict";
import { test } from "node:test";
import { defaultBudgetBytes, exceedsLimit, MemoryBudget } from "../../src/limits/memoryBudget.ts";

const KIB = 1024;
const MIB = 1024 * KIB;
const GIB = 1024 * MIB;

test("a client may hold as much as is free, so that room is left for each other client", () => {
  const budget = new MemoryBudget(64 * MIB);
  const held: number[] = [];
  for (const client of ["a", "b", "c"]) {
    const use = budget.open("requests", client);
    let bytes = 0;
    while (use.tryAdd(MIB)) {
      bytes += MIB;
    }
    held.push(bytes / MIB);
  }
  assert.deepEqual(held, [32, 16, 8]);
  assert.equal(budget.takeRefusals("requests"), 3);
  assert.equal(budget.takeRefusals("requests"), 0);
  assert.equal(budget.usedBytes, 56 * MIB);
  assert.equal(budget.refuse("logs", "a")?.status, 503);
  assert.equal(budget.refuse("logs", "a")?.retryAfterSeconds, 1);
  assert.equal(budget.refuse("logs", "d"), undefined);
});

test("a client never holds more than its share, also in large pieces", () => {
  const use = new MemoryBudget(64 * MIB).open("requests", "a");
  assert.ok(!use.tryAdd(33 * MIB));
  assert.ok(use.tryAdd(24 * MIB));
  assert.ok(!use.tryAdd(9 * MIB));
  assert.ok(use.tryAdd(8 * MIB));
});

test("the clients of one IPv6 /48 hold no more together than one client", () => {
  const budget = new MemoryBudget(64 * MIB);
  const uses = Array.from({ length: 20 }, (_, at) => budget.open("requests", `2001:db8:0:${at}::/64`));
  const held = uses.filter((use) => use.tryAdd(8 * MIB)).length;
  assert.equal(held, 4);
  assert.ok(!budget.tryAnnounce("requests", "2001:db8:0:77::/64", MIB));
  assert.ok(budget.open("requests", "2001:db8:1:0::/64").tryAdd(8 * MIB));
  for (const use of uses) {
    use.end();
  }
  assert.equal(budget.usedBytes, 8 * MIB);
  assert.ok(budget.tryAnnounce("requests", "2001:db8:0:77::/64", MIB));
});

test("bytes are counted by kind, and the end of a use releases them once", () => {
  const budget = new MemoryBudget(MIB);
  const use = budget.open("filters", "a");
  assert.ok(use.tryAdd(100 * KIB) && use.trySet(200 * KIB) && use.trySet(50 * KIB));
  assert.equal(budget.usedBy("filters"), 50 * KIB);
  assert.equal(budget.usedBy("logs"), 0);
  use.end();
  use.end();
  assert.equal(budget.usedBytes, 0);
});

test("announced bytes limit their client alone, until they arrive or end", () => {
  const budget = new MemoryBudget(64 * MIB);
  const announce = (client: string, bytes: number) => budget.tryAnnounce("requests", client, bytes);
  assert.ok(announce("a", 20 * MIB));
  assert.ok(!announce("a", 13 * MIB), "both would not fit to their end");
  assert.ok(announce("a", 12 * MIB));
  assert.ok(announce("b", 32 * MIB));
  assert.equal(budget.usedBytes, 0);
  const use = budget.open("requests", "a");
  assert.ok(use.tryAdd(20 * MIB));
  budget.endAnnounced("a", 20 * MIB);
  assert.ok(!announce("a", MIB));
  budget.endAnnounced("a", 12 * MIB);
  assert.ok(announce("a", 12 * MIB));
});

test("the default is half of what the container's limit leaves beside the caches, or half of the machine's memory", () => {
  const container = { limitBytes: 2 * GIB, totalBytes: 64 * GIB };
  assert.equal(defaultBudgetBytes(container, 512 * MIB), 768 * MIB);
  assert.equal(defaultBudgetBytes({ limitBytes: 256 * MIB, totalBytes: GIB }, 512 * MIB), 32 * MIB);
  assert.equal(defaultBudgetBytes({ limitBytes: undefined, totalBytes: 4 * GIB }, 512 * MIB), 2 * GIB);
  assert.equal(defaultBudgetBytes({ limitBytes: undefined, totalBytes: 64 * GIB }, 512 * MIB), 4 * GIB);
});

test("a plan above the container's limit is reported, and none without a limit", () => {
  const plan = { cacheBytes: 384 * MIB, budgetBytes: 128 * MIB, threads: 4 };
  assert.equal(exceedsLimit({ limitBytes: 512 * MIB, totalBytes: GIB }, plan), 782 * MIB);
  assert.equal(exceedsLimit({ limitBytes: GIB, totalBytes: GIB }, plan), undefined);
  assert.equal(exceedsLimit({ limitBytes: undefined, totalBytes: 512 * MIB }, plan), undefined);
});
