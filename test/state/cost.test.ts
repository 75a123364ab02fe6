import assert from "node:assert/strict";
import { test } from "node:test";
import { createUnitsOf, createUnitTable } from "../../src/access/providerUnits.ts";
import { createCost } from "./costRig.ts";

const TRACE = 40;
const ACCESS_LIST = 20;
const SECOND_MS = 1_000;

interface Read {
  readonly at?: bigint;
  readonly isHit?: boolean;
  readonly method?: string;
  readonly units?: number;
}

/** Wallets that read a balance every 4 s, while blocks arrive at an interval. */
const createWallets = () => {
  const { cost: policy, metrics, clock } = createCost();
  let block = 100n;
  const read = (index: number, { at = block, isHit = false, method = "eth_getBalance", units }: Read = {}) =>
    policy.onRead({
      key: { field: "balance", address: `0x${index.toString(16).padStart(40, "0")}`, slot: undefined },
      method,
      block: at,
      isHit,
      units,
    });
  /** Runs in steps of 100 ms. */
  const run = (forMs: number, { wallets, blockMs }: { readonly wallets: number; readonly blockMs: number }) => {
    const endMs = clock.nowMs + forMs;
    while (clock.nowMs < endMs) {
      clock.nowMs += 100;
      if (clock.nowMs % blockMs === 0) {
        block += 1n;
      }
      if (clock.nowMs % (4 * SECOND_MS) === 0) {
        for (let wallet = 0; wallet < wallets; wallet++) {
          read(wallet);
        }
      }
    }
  };
  const saved = async () => (await metrics.stateUnitsSaved.get()).values.reduce((sum, { value }) => sum + value, 0);
  return { policy, read, run, saved };
};

test("a trace is followed once repeated reads cost twice as much, and not before", () => {
  const { policy, run } = createWallets();
  assert.equal(policy.shouldFollow(TRACE), false);
  run(60 * SECOND_MS, { wallets: 7, blockMs: 2 * SECOND_MS });
  assert.equal(policy.shouldFollow(TRACE), false, "7 wallets cost 35 units/s, a trace of each block costs 20");
  assert.equal(policy.shouldFollow(ACCESS_LIST), true, "an access list costs 10 units/s");
  run(60 * SECOND_MS, { wallets: 9, blockMs: 2 * SECOND_MS });
  assert.equal(policy.shouldFollow(TRACE), true, "9 wallets cost 45 units/s");
});

test("the same wallets do not pay for a trace of blocks of 200 ms", () => {
  const { policy, run } = createWallets();
  run(60 * SECOND_MS, { wallets: 50, blockMs: 200 });
  assert.equal(policy.shouldFollow(TRACE), false, "50 wallets cost 250 units/s, traces cost 200");
  run(60 * SECOND_MS, { wallets: 100, blockMs: 200 });
  assert.equal(policy.shouldFollow(TRACE), true);
});

test("a source is not followed 30 s after the last read, nor on the reads of an earlier minute", () => {
  const { policy, run } = createWallets();
  run(60 * SECOND_MS, { wallets: 100, blockMs: 2 * SECOND_MS });
  run(28 * SECOND_MS, { wallets: 0, blockMs: 2 * SECOND_MS });
  assert.equal(policy.shouldFollow(TRACE), true);
  run(2 * SECOND_MS, { wallets: 0, blockMs: 2 * SECOND_MS });
  assert.equal(policy.shouldFollow(TRACE), false);
  run(60 * SECOND_MS, { wallets: 1, blockMs: 2 * SECOND_MS });
  assert.equal(policy.shouldFollow(TRACE), false);
});

test("a free source is followed without reads", () => {
  const { policy } = createWallets();
  assert.equal(policy.shouldFollow(0), true);
});

test("reads that are new, or of the same or an older block, are not repeated", () => {
  const { policy, read, run } = createWallets();
  for (let index = 0; index < 1_000; index++) {
    read(0);
    read(index);
  }
  assert.equal(policy.shouldFollow(TRACE), false);
  run(2 * SECOND_MS, { wallets: 0, blockMs: 2 * SECOND_MS });
  for (let index = 0; index < 1_000; index++) {
    read(index, { at: 100n });
  }
  assert.equal(policy.shouldFollow(TRACE), false);
  for (let index = 0; index < 4; index++) {
    read(index, { at: 101n });
  }
  assert.equal(policy.shouldFollow(TRACE), true);
});

test("blocks of a pause do not count as blocks of the last minute", () => {
  const { policy, run } = createWallets();
  run(60 * SECOND_MS, { wallets: 100, blockMs: 2 * SECOND_MS });
  run(600 * SECOND_MS, { wallets: 0, blockMs: 2 * SECOND_MS });
  assert.equal(policy.shouldFollow(TRACE), false);
  run(12 * SECOND_MS, { wallets: 100, blockMs: 2 * SECOND_MS });
  assert.equal(policy.shouldFollow(TRACE), true);
});

test("the write sets of a pause are read only if they cost less than the values", () => {
  const { policy, run } = createWallets();
  run(90 * SECOND_MS, { wallets: 100, blockMs: 2 * SECOND_MS });
  assert.equal(policy.shouldCatchUp(49, TRACE), true, "100 values cost 2,000 units");
  assert.equal(policy.shouldCatchUp(50, TRACE), false);
  run(120 * SECOND_MS, { wallets: 0, blockMs: 2 * SECOND_MS });
  assert.equal(policy.shouldCatchUp(1, TRACE), false, "no value was used");
});

test("the first hit in each block saves the units of its method", async () => {
  const wallets = createWallets();
  wallets.read(1, { isHit: true });
  wallets.read(1, { isHit: true });
  assert.equal(await wallets.saved(), 20);
  wallets.read(1, { at: 101n, isHit: true, method: "eth_call" });
  assert.equal(await wallets.saved(), 46);
});

test("a read may cost other units than its method", async () => {
  const wallets = createWallets();
  wallets.read(1, { at: 1n });
  wallets.read(1, { at: 2n, isHit: true, units: 3 });
  assert.equal(await wallets.saved(), 3);
});

test("units follow the table, unless the operator sets them", () => {
  const unitsOf = createUnitsOf(createUnitTable("alchemy", { eth_call: 25 }, { eth_call: 30, custom_method: 1 }));
  assert.deepEqual(
    ["eth_chainId", "eth_call", "eth_getBalance", "debug_traceBlockByHash", "custom_method"].map(unitsOf),
    [0, 30, 20, 40, 1],
  );
  assert.equal(createUnitsOf()("eth_call"), 26);
});

test("the longest prefix gives the units of a method that the table does not name", () => {
  const units = createUnitsOf(createUnitTable("quicknode", { "debug_trace*": 50 }));
  assert.deepEqual(
    ["eth_call", "debug_getRawBlock", "debug_traceCall", "trace_replayTransaction"].map(units),
    [20, 40, 50, 80],
  );
  assert.deepEqual(
    ["eth_getLogs", "debug_traceCall", "eth_chainId"].map(createUnitsOf(createUnitTable("infura"))),
    [255, 1000, 5],
  );
  assert.equal(createUnitsOf(createUnitTable("calls"))("eth_getLogs"), 1);
});

test("units spent and saved are counted", async () => {
  const { cost, metrics } = createCost();
  cost.onCall({ method: "eth_call", block: 1n, isHit: true, repetition: "repeated", units: 10_000 });
  cost.spend("check", 126);
  cost.spend("writeSets", 40);
  const saved = await metrics.stateUnitsSaved.get();
  assert.deepEqual(
    saved.values.map(({ value }) => value),
    [10_000],
  );
  const spent = await metrics.stateUnitsSpent.get();
  assert.deepEqual(
    spent.values.map(({ labels, value }) => [labels.purpose, value]),
    [
      ["check", 126],
      ["writeSets", 40],
    ],
  );
});

test("learning, proofs, checks and samples share one bucket, which fills in a minute", () => {
  const { cost, clock } = createCost({ unitsPerMinute: 600 });
  assert.equal(cost.forLearning, 600);
  for (const purpose of ["learning", "proofs", "check", "sample"] as const) {
    cost.spend(purpose, 200);
  }
  cost.spend("writeSets", 10_000);
  assert.equal(cost.forLearning, 0, "checks do not wait for it");
  clock.nowMs += 30_000;
  assert.equal(cost.forLearning, 100);
  clock.nowMs += 3_600_000;
  assert.equal(cost.forLearning, 600, "a quiet hour does not pay for a burst");
});
