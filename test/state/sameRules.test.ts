import assert from "node:assert/strict";
import { test } from "node:test";
import type { HeaderFields } from "../../src/core/heads.ts";
import { createSameRules } from "../../src/state/sameRules.ts";
import { blockOf, createHeads } from "../support/builders/heads.ts";

const PARENT = 8;
const PRAGUE: HeaderFields = { baseFeePerGas: "0x7", requestsHash: `0x${"11".repeat(32)}` };

/** Whether the rules are the same at a block with these header fields and at its child. */
const isSame = (parent: HeaderFields | undefined, child: HeaderFields | undefined): boolean => {
  const headers = new Map([
    [BigInt(PARENT), parent],
    [BigInt(PARENT + 1), child],
  ]);
  const heads = { ...createHeads({ latest: PARENT + 1 }), header: (number: bigint) => headers.get(number) };
  const hasSameRules = createSameRules({ forks: () => undefined, heads: () => heads });
  return hasSameRules(blockOf(PARENT), blockOf(PARENT + 1));
};

test("a field of a later fork that is null is absent", () => {
  const pushed = { ...PRAGUE, blockAccessListHash: null, slotNumber: null };
  assert.equal(isSame(pushed, PRAGUE), true);
  assert.equal(isSame(PRAGUE, pushed), true);
  assert.equal(isSame(pushed, pushed), true);
});

test("a field that only one of two blocks has shows other rules", () => {
  const amsterdam = { ...PRAGUE, blockAccessListHash: `0x${"22".repeat(32)}` };
  assert.equal(isSame(PRAGUE, amsterdam), false);
  assert.equal(isSame({ ...PRAGUE, blockAccessListHash: null }, amsterdam), false);
  assert.equal(isSame(amsterdam, PRAGUE), false);
});

test("a header that the ring does not have shows no difference", () => {
  assert.equal(isSame(undefined, PRAGUE), true);
});
