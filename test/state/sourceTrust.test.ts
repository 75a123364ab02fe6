import assert from "node:assert/strict";
import { test } from "node:test";
import { SourceTrust } from "../../src/state/sourceTrust.ts";
import type { WriteSetOrigin, WriteSetSource } from "../../src/state/writeSet.ts";

const BLOCK = { number: 1n, hash: `0x${"11".repeat(32)}` } as const;
const HOUR_MS = 3_600_000;
const { signal } = new AbortController();

const sourceOf = (origin: WriteSetOrigin, has: () => boolean): WriteSetSource => ({
  origin,
  unitsPerBlock: 20,
  read: async (block) => (has() ? { block, accounts: new Map() } : "late"),
});

test("the source of the newest write set rests for an hour", async () => {
  const clock = { nowMs: 0 };
  const state = { hasList: false };
  const trust = new SourceTrust(() => clock.nowMs);
  const list = trust.guard(sourceOf("accessList", () => state.hasList));
  const trace = trust.guard(sourceOf("trace", () => true));
  assert.equal(trust.rest(), undefined);
  assert.equal(await list.read(BLOCK, signal), "late");
  await trace.read(BLOCK, signal);
  assert.equal(trust.rest(), "trace");
  assert.equal(await trace.read(BLOCK, signal), "unsupported");
  state.hasList = true;
  assert.notEqual(await list.read(BLOCK, signal), "unsupported");
  clock.nowMs = HOUR_MS;
  assert.notEqual(await trace.read(BLOCK, signal), "unsupported");
});
