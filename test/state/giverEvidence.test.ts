import assert from "node:assert/strict";
import { test } from "node:test";
import { GiverEvidence } from "../../src/state/giverEvidence.ts";
import type { StateKey } from "../../src/state/stateKey.ts";
import { hashOf } from "../support/builders/heads.ts";
import { addressOf } from "../support/builders/stateModel.ts";

const keyOf = (index: number): StateKey => ({ field: "balance", address: addressOf(index), slot: undefined });
const block = (number: number) => ({ number: BigInt(number), hash: hashOf(number) });

test("probation is over after enough blocks and enough values", () => {
  const probation = new GiverEvidence({ blocks: 3, values: 5 });
  for (let index = 0; index < 10; index++) {
    probation.recordAgreement(keyOf(index), block(1));
  }
  assert.equal(probation.isTrusted, false, "one block");
  probation.recordAgreement(keyOf(0), block(2));
  assert.equal(probation.isTrusted, false, "two blocks");
  probation.recordAgreement(keyOf(0), block(3));
  assert.equal(probation.isTrusted, true);
  probation.suspend();
  assert.equal(probation.isTrusted, false);
});

test("a value counts once a block, and older blocks do not count", () => {
  const probation = new GiverEvidence({ blocks: 2, values: 3 });
  for (let count = 0; count < 10; count++) {
    probation.recordAgreement(keyOf(0), block(2));
    probation.recordAgreement(keyOf(0), block(1));
  }
  probation.recordAgreement(keyOf(0), block(3));
  assert.equal(probation.isTrusted, false);
  probation.recordAgreement(keyOf(1), block(3));
  assert.equal(probation.isTrusted, true);
});

test("on a slow chain, eight blocks of a minute are enough, and a fast one needs all of its blocks", () => {
  for (const [blockMs, needed] of [
    [12_000, 8],
    [200, 32],
  ] as const) {
    const clock = { nowMs: 0 };
    const probation = new GiverEvidence({ blocks: 32, values: 1 }, () => clock.nowMs);
    let count = 0;
    while (!probation.isTrusted) {
      count++;
      clock.nowMs += blockMs;
      probation.recordAgreement(keyOf(0), block(count));
    }
    assert.equal(count, needed, `${blockMs} ms`);
  }
});
