import assert from "node:assert/strict";
import { test } from "node:test";
import type { BlockId, HeaderFields, Heads, RingBlock } from "../../src/core/heads.ts";
import { formatHeader, hashHeader } from "../../src/ethereum/blockHeader.ts";
import { createBloom } from "../../src/ethereum/bloom.ts";
import { type Hash, ZERO_ADDRESS, ZERO_HASH } from "../../src/ethereum/hex.ts";
import { createCall } from "../../src/jsonrpc/call.ts";
import { CommittedBlocks } from "../../src/methods/committedBlocks.ts";
import { isAnchored } from "../../src/methods/proofRules.ts";
import { OwnHashes } from "../../src/verification/checkHeader.ts";
import { createContext } from "../support/builders/request.ts";

const LENGTH = 300;
const KNOWN_HEADERS = 256;

interface TestBlock {
  readonly block: RingBlock;
  readonly header: HeaderFields;
}

/** Returns linked blocks with the numbers from 0. */
const createBlocks = (): TestBlock[] => {
  const blocks: TestBlock[] = [];
  let parentHash: Hash = ZERO_HASH;
  for (let number = 0n; number < LENGTH; number++) {
    const fields = {
      ...({ parentHash, miner: ZERO_ADDRESS, stateRoot: ZERO_HASH, mixHash: ZERO_HASH, extraData: "0x" } as const),
      ...{ transactionsRoot: ZERO_HASH, receiptsRoot: ZERO_HASH, logsBloom: createBloom() },
      ...{ number, gasLimit: 30_000_000n, gasUsed: 0n, timestamp: 1_700_000_000n + number },
    };
    const hash = hashHeader(fields);
    const { timestamp, logsBloom } = fields;
    blocks.push({ block: { number, hash, parentHash, timestamp, logsBloom }, header: formatHeader(fields, hash) });
    parentHash = hash;
  }
  return blocks;
};

const headsOf = (blocks: readonly TestBlock[]): Heads => {
  const latest = blocks.at(-1)?.block;
  assert.ok(latest !== undefined);
  return {
    ...{ latest, isAgreed: true, safe: undefined, finalized: undefined, oldest: 0n },
    at: (number) => blocks[Number(number)]?.block,
    header: (number) => (number + BigInt(KNOWN_HEADERS) > latest.number ? blocks[Number(number)]?.header : undefined),
  };
};

const linked = (blocks: readonly TestBlock[], number: number): boolean => {
  const id = blocks[number]?.block;
  assert.ok(id !== undefined);
  return new CommittedBlocks(new OwnHashes()).has(headsOf(blocks), id);
};

test("the head commits to the newest 256 blocks", () => {
  const blocks = createBlocks();
  assert.equal(linked(blocks, LENGTH - 1), true);
  assert.equal(linked(blocks, LENGTH - KNOWN_HEADERS), true);
  assert.equal(linked(blocks, LENGTH - KNOWN_HEADERS - 1), false, "its header is not known");
});

test("a head that follows another one commits to its own ancestors alone", () => {
  const blocks = createBlocks();
  const committed = new CommittedBlocks(new OwnHashes());
  const at = (number: number) => blocks[number]?.block ?? assert.fail();
  const older = headsOf(blocks.slice(0, LENGTH - 1));
  const newer = headsOf(blocks);
  for (const heads of [older, newer, older]) {
    assert.equal(committed.has(heads, at(LENGTH - 10)), true);
    assert.equal(committed.has(heads, at(LENGTH - 1)), heads === newer);
    assert.equal(committed.has(heads, { number: at(LENGTH - 5).number, hash: ZERO_HASH }), false);
  }
});

test("nothing below a header with an unknown field is committed to: its hash could not be computed, and its parent may be forged", () => {
  const blocks = createBlocks();
  const forgedAt = LENGTH - 3;
  const { block, header } = blocks[forgedAt] ?? assert.fail();
  const forged = { ...header, newField: "0x1", parentHash: ZERO_HASH };
  blocks[forgedAt] = { block, header: forged };
  assert.equal(linked(blocks, forgedAt + 1), true);
  assert.equal(linked(blocks, forgedAt), false);
  assert.equal(linked(blocks, forgedAt - 1), false);
});

test("with confirmations, the head of the chain must commit to the block, not that of the view", () => {
  const blocks = createBlocks();
  const forgedAt = LENGTH - 3;
  const { block, header } = blocks[forgedAt] ?? assert.fail();
  blocks[forgedAt] = { block, header: { ...header, newField: "0x1", parentHash: ZERO_HASH } };
  const heads = headsOf(blocks);
  for (const [confirmations, isHeld] of [
    [1, true],
    [3, false],
  ] as const) {
    const below = headsOf(blocks.slice(0, LENGTH - confirmations));
    const base = createContext({ heads: below });
    const context = base.with({ behind: { confirmations, actual: { heads } } });
    const chain = { committed: new CommittedBlocks(new OwnHashes()) };
    const call = createCall("eth_getBlockByNumber", ["latest", false]);
    assert.equal(isAnchored(below.latest, { chain, call, context }), isHeld, `${confirmations} confirmations`);
  }
});

test("a block that the request names by its hash needs no head, unless it must be canonical", () => {
  const blocks = createBlocks();
  const orphan = { number: 7n, hash: ZERO_HASH };
  const { block } = blocks.at(-1) ?? assert.fail();
  const isOf = (id: BlockId, param: unknown): boolean => {
    const chain = { committed: new CommittedBlocks(new OwnHashes()) };
    const call = createCall("eth_getBalance", [ZERO_ADDRESS, param]);
    return isAnchored(id, { chain, call, context: createContext({ heads: headsOf(blocks) }) });
  };
  assert.equal(isOf(orphan, ZERO_HASH), true);
  assert.equal(isOf(orphan, { blockHash: ZERO_HASH }), true);
  assert.equal(isOf(orphan, { blockHash: ZERO_HASH, requireCanonical: true }), false);
  assert.equal(isOf(block, { blockHash: block.hash, requireCanonical: true }), true);
});
