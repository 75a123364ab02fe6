import assert from "node:assert/strict";
import { test } from "node:test";
import type { BlockId } from "../../src/core/heads.ts";
import { Audit } from "../../src/state/audit.ts";
import type { ComparedNode } from "../../src/state/fetch/nodeReaders.ts";
import type { StateKey } from "../../src/state/stateKey.ts";
import { packWrites } from "../../src/state/store/packedWrites.ts";
import { ValueStore } from "../../src/state/store/valueStore.ts";
import type { WriteSet } from "../../src/state/writeSet.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { hashOf } from "../support/builders/heads.ts";
import { fetchedValues } from "../support/builders/nodeState.ts";
import { createRandom } from "../support/builders/randomValues.ts";
import { runAll } from "../support/builders/runAll.ts";
import { addressOf } from "../support/builders/stateModel.ts";
import { createCost, createGuard } from "./costRig.ts";

/** Values that clients of a busy chain read, of which few are read often. */
const KEYS = 20_000;
const TRUTH = "1".padStart(64, "0");
const TRIALS = 8;
const MAX_SECONDS = 120;
const blockOf = (number: bigint): BlockId => ({ number, hash: hashOf(Number(number)) });
const keyOf = (index: number): StateKey => ({ field: "balance", address: addressOf(index), slot: undefined });

interface Load {
  readonly blockSeconds: number;
  readonly writes: number;
  readonly readsPerSecond: number;
  /** Of the writes of each block that the trace changes. */
  readonly share: number;
}

/** Follows traces that lie from the second block on. Returns the wrong answers until all values end. */
const countWrong = async ({ blockSeconds, writes, readsPerSecond, share }: Load, seed: number): Promise<number> => {
  const random = createRandom(seed);
  // Zipf: the rank of a key is its index.
  const draw = (): number => Math.floor(KEYS ** random()) - 1;
  const values = new ValueStore(16_000_000);
  values.begin(blockOf(1n));
  for (let index = 0; index < KEYS; index++) {
    values.add(keyOf(index), blockOf(1n), TRUTH);
  }
  const { cost, clock } = createCost({ used: values.used });
  let isFound = false;
  const reader: ComparedNode["reader"] = {
    unitsFor: () => 26,
    read: async (keys) => fetchedValues({ values: new Map(keys.map((key) => [key, TRUTH])) }),
    readSingly: async (keys) => fetchedValues({ values: new Map(keys.map((key) => [key, TRUTH])) }),
    fetch: async () => fetchedValues(),
  };
  const nodes = ["liar", "honest"].map((name) => ({ name, origin: name, reader }));
  const audit = new Audit({
    ...{ chain: "chain", values, cost, random, guard: createGuard(["liar", "honest"]) },
    follower: { generation: 0, forget: () => (isFound = true) },
    nodes: () => nodes,
    telemetry: createTelemetry({ level: "silent" }),
    nowMs: () => clock.nowMs,
    recordWrongValue: () => undefined,
  });
  let wrong = 0;
  for (let number = 2n; !isFound && (number - 2n) * BigInt(blockSeconds) < MAX_SECONDS; number++) {
    const balances = Array.from({ length: writes }, () => {
      const balance = random() < share ? 7n : 1n;
      return [addressOf(draw()), { balance, slots: new Map() }] as const;
    });
    const writeSet: WriteSet = {
      block: blockOf(number),
      grade: "checked",
      packed: packWrites(new Map(balances)),
      node: "liar",
    };
    runAll(values.apply(writeSet));
    audit.onApplied(writeSet);
    for (let read = 0; read < blockSeconds * readsPerSecond && !isFound; read++) {
      clock.nowMs += 1_000 / readsPerSecond;
      const key = keyOf(draw());
      wrong += values.get(key, writeSet.block) === TRUTH ? 0 : 1;
      audit.onLocalRead(key);
      await new Promise(setImmediate);
    }
  }
  return wrong;
};

for (const [load, most] of [
  [{ blockSeconds: 12, writes: 1_500, readsPerSecond: 50, share: 0.01 }, 5],
  [{ blockSeconds: 12, writes: 1_500, readsPerSecond: 50, share: 0.1 }, 10],
  [{ blockSeconds: 2, writes: 250, readsPerSecond: 50, share: 0.01 }, 5],
  [{ blockSeconds: 2, writes: 250, readsPerSecond: 500, share: 0.5 }, 30],
] as const) {
  test(`at a busy chain's size, few wrong answers pass before a check: ${JSON.stringify(load)}`, async () => {
    let wrong = 0;
    for (let seed = 0; seed < TRIALS; seed++) {
      wrong += await countWrong(load, seed);
    }
    assert.ok(wrong / TRIALS <= most, `${wrong / TRIALS} wrong answers`);
  });
}
