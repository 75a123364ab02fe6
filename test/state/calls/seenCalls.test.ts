import assert from "node:assert/strict";
import { test } from "node:test";
import type { BlockId } from "../../../src/core/heads.ts";
import { SeenCalls } from "../../../src/state/calls/callTable.ts";

const at = (number: bigint): BlockId => ({ number, hash: `0x${"11".repeat(32)}` });

test("a call is new, then of the same block, then repeated at a later one", () => {
  const seen = new SeenCalls();
  assert.equal(seen.record("call", at(5n)), "new");
  assert.equal(seen.record("call", at(5n)), "sameBlock");
  assert.equal(seen.record("call", at(4n)), "sameBlock");
  assert.equal(seen.record("call", at(6n)), "repeated");
  assert.equal(seen.record("call", at(6n)), "sameBlock");
  assert.equal(seen.record("other", at(6n)), "new");
});

test("10,000 calls that are requested at each block are nearly all recognised beside others", () => {
  const seen = new SeenCalls();
  const record = (prefix: string, block: bigint): number => {
    let repeated = 0;
    for (let n = 0; n < 10_000; n++) {
      repeated += seen.record(`["eth_call",[{"to":"0x${prefix}${n}"},null]]`, at(block)) === "repeated" ? 1 : 0;
    }
    return repeated;
  };
  record("hot", 1n);
  record("once", 1n);
  const repeated = record("hot", 2n);
  assert.ok(repeated > 9_800, `${repeated}`);
});

test("a call that was last requested at the oldest block is forgotten first", () => {
  const seen = new SeenCalls();
  seen.record("old", at(1n));
  for (let n = 0; n < 300_000; n++) {
    seen.record(`${n}`, at(2n));
  }
  assert.equal(seen.record("old", at(3n)), "new");
});
