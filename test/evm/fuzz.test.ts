import assert from "node:assert/strict";
import { test } from "node:test";
import { paramsEVM } from "@ethereumjs/evm";
import type { StateReader } from "../../src/core/stateReader.ts";
import type { Address, Hash } from "../../src/ethereum/hex.ts";
import { createEngines } from "../../src/evm/createEngines.ts";
import { ReferenceEngine } from "../../src/evm/reference/referenceEngine.ts";
import { ReferenceState } from "../../src/evm/reference/referenceState.ts";
import { FUZZ_FORKS, FuzzRun } from "../support/fuzz/fuzzRun.ts";

/** Cases in which a planted fault must be found. */
const MAX_CASES = 200;
const SEED = 20_261_122;

const fast = await createEngines("fast");
const reference = await createEngines("reference");

/** Returns the number of cases of Osaka until a difference is found. */
const casesUntilFound = async (run: FuzzRun): Promise<number> => {
  for (let at = 1; at <= MAX_CASES; at++) {
    await run.runCase({ fork: "osaka", seed: SEED + at });
    if (run.differences.length > 0) {
      return at;
    }
  }
  return Number.POSITIVE_INFINITY;
};

test("random programs: both engines agree on every fork", async () => {
  const run = new FuzzRun(fast, reference);
  for (const fork of FUZZ_FORKS) {
    for (let at = 0; at < 4; at++) {
      await run.runCase({ fork, seed: SEED + at });
    }
  }
  assert.deepEqual(run.differences, []);
});

test("random programs: a wrong SSTORE refund is found", async (t) => {
  const london = paramsEVM["3529"];
  assert.ok(london);
  const right = london.sstoreClearRefundEIP2200Gas;
  assert.ok(right !== undefined);
  t.after(() => {
    london.sstoreClearRefundEIP2200Gas = right;
  });
  london.sstoreClearRefundEIP2200Gas = Number(right) + 1;
  const faulty = await createEngines("reference");
  assert.ok((await casesUntilFound(new FuzzRun(fast, faulty))) <= MAX_CASES);
});

const LOST_SLOT = 2n;

/** Loses writes of zero to one slot. */
class LosesWrites extends ReferenceState {
  override setStorage(address: Address, slot: Hash, value: Uint8Array): void {
    if (BigInt(slot) !== LOST_SLOT || value.length > 0) {
      super.setStorage(address, slot, value);
    }
  }
}

/** Reads one slot as zero. */
class LosesReads extends ReferenceState {
  override storageOf(address: Address, slot: Hash): Uint8Array {
    return BigInt(slot) === LOST_SLOT ? new Uint8Array(0) : super.storageOf(address, slot);
  }
}

const FAULTS = [
  ["write", LosesWrites],
  ["read", LosesReads],
] as const;

for (const [name, State] of FAULTS) {
  test(`random programs: a lost ${name} is found`, async () => {
    const faulty = new (class extends ReferenceEngine {
      override createState(reader: StateReader): ReferenceState {
        return new State(reader);
      }
    })({ chainId: 1n, fork: "osaka" });
    assert.ok((await casesUntilFound(new FuzzRun(fast, () => faulty))) <= MAX_CASES);
  });
}
