import assert from "node:assert/strict";
import { test } from "node:test";
import type { BlockId } from "../../../src/core/heads.ts";
import { NodeDefaultsCache } from "../../../src/state/answers/nodeDefaultsCache.ts";

const NODE = "node";
const BLOCK: BlockId = { number: 1n, hash: `0x${"1".repeat(64)}` };
const TEN_MINUTES_MS = 600_000;
const WORDS = 11;
const GAS_BEFORE = 21_002n;

/** The result of the probe: the gas, and zero for all other opcodes. */
const words = (gas: bigint): string =>
  `0x${gas
    .toString(16)
    .padStart(64, "0")
    .padEnd(64 * WORDS, "0")}`;

test("the defaults of a node that executions alone use are read again after ten minutes", async () => {
  let nowMs = 0;
  let result: unknown = words(100n);
  let asked = 0;
  const cache = new NodeDefaultsCache({
    callNode: async (_node, calls) => {
      asked++;
      return calls.map(() => result);
    },
    headerOf: () => ({}),
    nowMs: () => nowMs,
    onSpent: () => undefined,
  });
  const known = () => cache.known(NODE, BLOCK)?.gas;
  assert.equal(known(), undefined);
  await cache.get(NODE, BLOCK);
  nowMs += TEN_MINUTES_MS - 1;
  assert.equal(known(), 100n + GAS_BEFORE);
  assert.equal(asked, 1);
  result = words(50n);
  nowMs += 1;
  assert.equal(known(), 100n + GAS_BEFORE);
  await cache.get(NODE, BLOCK);
  assert.equal(known(), 50n + GAS_BEFORE);
  assert.equal(asked, 2);
  result = new Error("no answer");
  nowMs += TEN_MINUTES_MS;
  known();
  await cache.get(NODE, BLOCK);
  assert.equal(known(), undefined);
});
