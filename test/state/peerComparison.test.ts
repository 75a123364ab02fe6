import assert from "node:assert/strict";
import { test } from "node:test";
import type { BlockId } from "../../src/core/heads.ts";
import { GiverEvidence } from "../../src/state/giverEvidence.ts";
import { PeerComparison } from "../../src/state/peerComparison.ts";
import { packWrites } from "../../src/state/store/packedWrites.ts";
import type { WriteSet, WriteSetFailure } from "../../src/state/writeSet.ts";
import { blockOf } from "../support/builders/heads.ts";
import { addressOf } from "../support/builders/stateModel.ts";

const BLOCKS = 3;
const VALUES = 6;
const BLOCK_MS = 2_000;

/** A write set of these balances. */
const writes = (block: BlockId, node: string, balances: readonly bigint[]): WriteSet => ({
  block,
  node,
  packed: packWrites(new Map(balances.map((balance, index) => [addressOf(index), { balance, slots: new Map() }]))),
});

/** Compares a peer with trusted write sets of two balances. `answer` is the peer's. */
const createRig = (answer: (block: BlockId) => WriteSet | WriteSetFailure | Error) => {
  const evidence = new GiverEvidence({ blocks: BLOCKS, values: VALUES });
  const asked: bigint[] = [];
  const clock = { nowMs: 0 };
  const peers = new PeerComparison({
    nowMs: () => clock.nowMs,
    candidates: () => (evidence.isTrusted ? [] : [["peer", evidence]]),
    readFrom: async (_, block) => {
      asked.push(block.number);
      const outcome = answer(block);
      if (outcome instanceof Error) {
        throw outcome;
      }
      return outcome;
    },
  });
  const follow = async (from: number, upTo: number, balances: readonly bigint[] = [1n, 2n]): Promise<void> => {
    for (let number = from; number <= upTo; number++) {
      clock.nowMs = number * BLOCK_MS;
      await peers.compare(writes(blockOf(number), "trusted", balances));
    }
  };
  return { evidence, asked, follow };
};

test("a node whose write sets have the trusted values ends its probation, and is asked no more", async () => {
  const { evidence, asked, follow } = createRig((block) => writes(block, "peer", [1n, 2n, 3n]));
  await follow(1, 2);
  assert.equal(evidence.isTrusted, false);
  await follow(3, 9);
  assert.equal(evidence.isTrusted, true);
  assert.deepEqual(asked, [1n, 2n, 3n]);
});

test("a node with another value, without one, or without an answer earns nothing and pauses", async () => {
  const outcomes: Record<string, (block: BlockId) => WriteSet | WriteSetFailure | Error> = {
    other: (block) => writes(block, "peer", [1n, 3n]),
    missing: (block) => writes(block, "peer", [1n]),
    late: () => "late",
    broken: () => new Error("broken"),
    "of another block": () => writes(blockOf(99), "peer", [1n, 2n]),
  };
  for (const [name, answer] of Object.entries(outcomes)) {
    const { evidence, asked, follow } = createRig(answer);
    await follow(1, 40);
    assert.deepEqual(asked, [1n, 31n], `${name}: after a minute`);
    assert.deepEqual([evidence.blocksLeft, evidence.valuesLeft], [BLOCKS, VALUES], name);
  }
});

test("a block without a written value costs no read", async () => {
  const empty = createRig(() => "late");
  await empty.follow(1, 5, []);
  assert.deepEqual(empty.asked, []);
  const asked: bigint[] = [];
  const unknown = new Map([[addressOf(1), { balance: "unknown" as const, slots: new Map() }]]);
  await new PeerComparison({
    nowMs: () => 0,
    candidates: () => [["peer", new GiverEvidence({ blocks: 1, values: 1 })]],
    readFrom: async (_, { number }) => {
      asked.push(number);
      return "late";
    },
  }).compare({ block: blockOf(6), node: "trusted", packed: packWrites(unknown) });
  assert.deepEqual(asked, []);
});
