import assert from "node:assert/strict";
import { test } from "node:test";
import { FollowPolicy, isCatchUpCheaper } from "../../src/state/followPolicy.ts";
import { createUnitsOf } from "../../src/state/providerUnits.ts";

const TRACE = { unitsPerBlock: 40 };
const ACCESS_LIST = { unitsPerBlock: 20 };
const FREE = { unitsPerBlock: 0 };
const SECOND_MS = 1_000;

/** Wallets that read a balance every 4 s, while blocks arrive at an interval. */
const createWallets = () => {
  let nowMs = 1_000_000;
  let block = 100n;
  const policy = new FollowPolicy(() => nowMs);
  const read = (name: string, units = 20) => policy.recordRead({ canonicalParams: name, units, block });
  /** Runs in steps of 100 ms. */
  const run = (forMs: number, { wallets, blockMs }: { readonly wallets: number; readonly blockMs: number }) => {
    const endMs = nowMs + forMs;
    while (nowMs < endMs) {
      nowMs += 100;
      if (nowMs % blockMs === 0) {
        block += 1n;
        policy.recordBlocks(1);
      }
      if (nowMs % (4 * SECOND_MS) === 0) {
        for (let wallet = 0; wallet < wallets; wallet++) {
          read(`wallet ${wallet}`);
        }
      }
    }
  };
  return { policy, read, run };
};

test("a trace is followed once repeated reads cost twice as much, and not before", () => {
  const { policy, run } = createWallets();
  assert.equal(policy.pays(TRACE), false);
  run(60 * SECOND_MS, { wallets: 7, blockMs: 2 * SECOND_MS });
  assert.equal(policy.pays(TRACE), false, "7 wallets cost 35 units/s, a trace of each block costs 20");
  assert.equal(policy.pays(ACCESS_LIST), true, "an access list costs 10 units/s");
  run(60 * SECOND_MS, { wallets: 9, blockMs: 2 * SECOND_MS });
  assert.equal(policy.pays(TRACE), true, "9 wallets cost 45 units/s");
});

test("the same wallets do not pay for a trace of blocks of 200 ms", () => {
  const { policy, run } = createWallets();
  run(60 * SECOND_MS, { wallets: 50, blockMs: 200 });
  assert.equal(policy.pays(TRACE), false, "50 wallets cost 250 units/s, traces cost 200");
  run(60 * SECOND_MS, { wallets: 100, blockMs: 200 });
  assert.equal(policy.pays(TRACE), true);
});

test("a source is not followed 30 s after the last read, nor on the reads of an earlier minute", () => {
  const { policy, run } = createWallets();
  run(60 * SECOND_MS, { wallets: 100, blockMs: 2 * SECOND_MS });
  run(28 * SECOND_MS, { wallets: 0, blockMs: 2 * SECOND_MS });
  assert.equal(policy.pays(TRACE), true);
  run(2 * SECOND_MS, { wallets: 0, blockMs: 2 * SECOND_MS });
  assert.equal(policy.pays(TRACE), false);
  run(60 * SECOND_MS, { wallets: 1, blockMs: 2 * SECOND_MS });
  assert.equal(policy.pays(TRACE), false);
});

test("a free source is followed without reads", () => {
  const { policy } = createWallets();
  assert.equal(policy.pays(FREE), true);
});

test("reads that are new, or of the same or an older block, are not repeated", () => {
  const { policy, read, run } = createWallets();
  for (let index = 0; index < 1_000; index++) {
    read("same block");
    read(`new ${index}`);
  }
  assert.equal(policy.pays(TRACE), false);
  run(2 * SECOND_MS, { wallets: 0, blockMs: 2 * SECOND_MS });
  policy.recordRead({ canonicalParams: "same block", units: 10_000, block: 100n });
  assert.equal(policy.pays(TRACE), false);
  policy.recordRead({ canonicalParams: "same block", units: 10_000, block: 101n });
  assert.equal(policy.pays(TRACE), true);
});

test("the write sets of a pause are read only if they cost less than the values", () => {
  const pause = { unitsPerBlock: 40, usedValues: 100, unitsPerValue: 20 };
  assert.equal(isCatchUpCheaper({ ...pause, missedBlocks: 49 }), true);
  assert.equal(isCatchUpCheaper({ ...pause, missedBlocks: 50 }), false);
  assert.equal(isCatchUpCheaper({ ...pause, missedBlocks: 5, unitsPerValue: 26 / 500 }), false);
  assert.equal(isCatchUpCheaper({ ...pause, missedBlocks: 257, usedValues: 1_000_000 }), false);
});

test("units follow the table, unless the operator sets them", () => {
  const unitsOf = createUnitsOf({ eth_call: 30, custom_method: 1 });
  assert.deepEqual(
    ["eth_chainId", "eth_call", "eth_getBalance", "debug_traceBlockByHash", "custom_method"].map(unitsOf),
    [0, 30, 20, 40, 1],
  );
  assert.equal(createUnitsOf()("eth_call"), 26);
});
