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

test("replicas pass a probation together, and what one of them learned before counts once", () => {
  const limits = { blocks: 3, values: 9 };
  const replicas = Array.from({ length: 3 }, () => new GiverEvidence(limits));
  const exchange = () => {
    const own = replicas.map(({ ownProgress }) => ownProgress);
    for (const [index, replica] of replicas.entries()) {
      replica.countOthers(own.filter((_, other) => other !== index));
    }
  };
  for (let number = 1; number <= 2; number++) {
    for (const [index, replica] of replicas.entries()) {
      replica.recordAgreement(keyOf(index), block(number));
    }
  }
  exchange();
  assert.deepEqual(
    replicas.map(({ blocksLeft, valuesLeft }) => [blocksLeft, valuesLeft]),
    [
      [1, 3],
      [1, 3],
      [1, 3],
    ],
  );
  // A new replica goes on with a snapshot of another one.
  const later = new GiverEvidence(limits);
  later.resume({ blocks: 2, values: 6, ageMs: 1 });
  later.countOthers(replicas.map(({ ownProgress }) => ownProgress));
  assert.deepEqual([later.blocksLeft, later.valuesLeft], [1, 3]);
  for (const [index, replica] of replicas.entries()) {
    replica.recordAgreement(keyOf(index), block(3));
    assert.equal(replica.isTrusted, false);
  }
  exchange();
  assert.ok(replicas.every(({ isTrusted }) => isTrusted));
  const [one] = replicas;
  one?.countOthers([]);
  assert.equal(one?.isTrusted, true, "the others have ended");
  one?.suspend();
  assert.deepEqual([one?.blocksLeft, one?.valuesLeft], [3, 9]);
});
