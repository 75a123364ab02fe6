import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import type { HeaderFields } from "../../src/core/heads.ts";
import { parseData } from "../../src/ethereum/hex.ts";
import type { FeedMessage } from "../../src/feed/feedMessage.ts";
import { flashblock, hashOf, raw } from "../support/builders/flashblocks.ts";
import { rootOf } from "./fakeExecutor.ts";
import { createRig, type RigOptions } from "./pendingRig.ts";

export const block = (number: bigint, count = 2) =>
  Array.from({ length: count }, (_, index) =>
    flashblock(index, { number, transactions: [raw(Number(number) * 100 + index)] }),
  );

export type Rig = ReturnType<typeof createRig>;

/** Creates pending views after a first complete block of one message, so that the number of messages of a block is known. */
export const createBegunRig = async (t: TestContext, options: RigOptions = {}): Promise<Rig> => {
  const { head = 100n } = options;
  const rig = createRig(t, { ...options, head: head - 1n });
  const messages = block(head, 1);
  await rig.send(...messages);
  rig.heads.move(sealed(messages, head));
  await turn();
  rig.changes.length = 0;
  rig.fake.rebased.length = 0;
  return rig;
};

/** Asserts that pending is not older than the newest sealed block: its blocks are above it, and its base is that block. */
export const assertNotOlder = (rig: Rig): void => {
  const { heads, pending } = rig.pending.view();
  assert.ok(pending);
  for (const { number } of pending.blocks) {
    assert.ok(number > heads.latest.number);
  }
  assert.equal(pending.base.hash, heads.latest.hash);
};

/** Lets the node seal its next block. The block's content is unknown. */
export const sealBlock = async (rig: Rig, number: bigint): Promise<void> => {
  rig.heads.move({ number });
  await turn();
  assertNotOlder(rig);
};

/** The fields of a header that say in which environment the block's messages were executed. */
export const environmentFields = (number: bigint): HeaderFields => ({
  gasLimit: "0x1c9c380",
  timestamp: `0x${(1_700_000_000n + number * 2n).toString(16)}`,
  baseFeePerGas: "0x7",
  miner: "0x4200000000000000000000000000000000000011",
  mixHash: hashOf(7),
  parentBeaconBlockRoot: hashOf(0),
});

/** Creates the head whose block these messages build. */
export const sealed = (messages: readonly FeedMessage[], number = 101n) => {
  const newest = messages.at(-1);
  if (!newest) {
    throw new Error("no messages");
  }
  const raws = messages.flatMap(({ transactions }) => transactions);
  return {
    number,
    logsBloom: parseData(newest.commitments.logsBloom),
    header: {
      ...environmentFields(number),
      transactionsRoot: rootOf(raws),
      gasUsed: `0x${newest.commitments.gasUsed.toString(16)}`,
      receiptsRoot: newest.commitments.receiptsRoot,
    },
  };
};
