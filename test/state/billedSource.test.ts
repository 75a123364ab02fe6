import assert from "node:assert/strict";
import { test } from "node:test";
import { BilledSource } from "../../src/state/billedSource.ts";
import type { WriteSet, WriteSetFailure } from "../../src/state/writeSet.ts";

const BLOCK = { number: 1n, hash: `0x${"11".repeat(32)}` } as const;

test("each write set that was asked of a node is billed", async () => {
  const outcomes: (WriteSet | WriteSetFailure)[] = ["late", "unsupported", { block: BLOCK, accounts: new Map() }];
  const spent: [string, number][] = [];
  const source = new BilledSource(
    { kind: "trace", unitsPerBlock: 60, read: async () => outcomes.shift() ?? "error" },
    { spend: (purpose, units) => spent.push([purpose, units]) },
  );
  assert.deepEqual([source.kind, source.unitsPerBlock], ["trace", 60]);
  const { signal } = new AbortController();
  assert.equal(await source.read(BLOCK, signal), "late");
  assert.equal(await source.read(BLOCK, signal), "unsupported");
  assert.equal(((await source.read(BLOCK, signal)) as WriteSet).block, BLOCK);
  assert.deepEqual(spent, [
    ["writeSets", 60],
    ["writeSets", 60],
  ]);
});
