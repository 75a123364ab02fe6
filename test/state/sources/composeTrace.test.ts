import assert from "node:assert/strict";
import { test } from "node:test";
import { type BlockHeader, formatHeader, hashHeader } from "../../../src/ethereum/blockHeader.ts";
import { type Address, type Hash, parseData, ZERO_HASH } from "../../../src/ethereum/hex.ts";
import { orderedTrieRoot } from "../../../src/ethereum/orderedTrie.ts";
import { composeTrace } from "../../../src/state/sources/composeTrace.ts";
import { parseTracedBlock, type TracedBlock } from "../../../src/state/sources/tracedBlock.ts";
import type { DiffAccount } from "../../../src/state/sources/traceTexts.ts";
import { encodeJson } from "./recordedBlocks.ts";

const SENDER: Address = `0x${"11".repeat(20)}`;
const OTHER: Address = `0x${"22".repeat(20)}`;
const MINER: Address = `0x${"33".repeat(20)}`;
const HASH: Hash = `0x${"aa".repeat(32)}`;
const NO_SLOTS = { slots: new Map() };

const compose = (block: Partial<TracedBlock>, post: Record<Address, Partial<DiffAccount>>, pre: typeof post = {}) => {
  const sides = [pre, { [SENDER]: { nonce: 1n }, ...post }].map(
    (side) =>
      new Map(Object.entries(side).map(([address, fields]) => [address as Address, { ...NO_SLOTS, ...fields }])),
  );
  const [before = new Map(), after = new Map()] = sides;
  return composeTrace({
    diffs: [{ transactionHash: HASH, pre: before, post: after }],
    block: {
      transactions: [{ hash: HASH, sender: SENDER, nextNonce: 1n, isCreation: false, authorizations: [] }],
      feeRecipient: MINER,
      ...{ baseFee: 0n, gasUsed: 0n, blobGasUsed: 0n, excessBlobGas: 0n },
      withdrawn: [],
      paysMiner: false,
      paysOmmers: false,
      ...block,
    },
    calls: [{ transactionHash: HASH, creations: new Map(), accounts: new Set() }],
    contracts: [],
    blobs: undefined,
  });
};

test("the fee recipient's balance is the trace's, or unknown if the trace has none", () => {
  assert.equal(compose({}, { [MINER]: { balance: 5n } }).get(MINER)?.balance, 5n);
  assert.equal(compose({}, {}).get(MINER)?.balance, "unknown");
});

test("the miner's balance is unknown before the merge, and a block with ommers has no write set", () => {
  assert.equal(compose({ paysMiner: true }, { [MINER]: { balance: 5n } }).get(MINER)?.balance, "unknown");
  assert.throws(() => compose({ paysMiner: true, paysOmmers: true }, {}), { name: "UntracedTransaction" });
});

test("the code of an account that had a delegation is unknown, also without an authorization in the transaction", () => {
  const delegation = { code: parseData(`0xef0100${"44".repeat(20)}`) };
  const plain = { code: parseData("0xef0001") };
  const accounts = compose(
    {},
    { [OTHER]: { balance: 1n }, [MINER]: { balance: 1n } },
    { [OTHER]: delegation, [MINER]: plain },
  );
  assert.equal(accounts.get(OTHER)?.code, "unknown");
  assert.equal(accounts.get(MINER)?.code, undefined);
});

test("a deposit's sender may have no nonce", () => {
  const deposit = { hash: HASH, sender: OTHER, nextNonce: undefined, isCreation: false, authorizations: [] };
  assert.ok(compose({ transactions: [deposit] }, {}));
});

const EMPTY_ROOT = orderedTrieRoot([]);

test("a block from before the merge pays its miner, and the miners of its ommers", () => {
  const header: BlockHeader = {
    parentHash: ZERO_HASH,
    miner: MINER,
    stateRoot: ZERO_HASH,
    transactionsRoot: EMPTY_ROOT,
    receiptsRoot: EMPTY_ROOT,
    logsBloom: new Uint8Array(256),
    difficulty: 2n,
    number: 7n,
    gasLimit: 1n,
    gasUsed: 0n,
    timestamp: 1n,
    extraData: "0x",
    mixHash: ZERO_HASH,
  };
  const parse = (change: Partial<BlockHeader>, uncles: readonly Hash[]) => {
    const changed = { ...header, ...change };
    const hash = hashHeader(changed);
    const body = encodeJson({ ...formatHeader(changed, hash), transactions: [], uncles });
    return parseTracedBlock(body, { number: 7n, hash });
  };
  const facts = (block: TracedBlock | undefined) => [block?.paysMiner, block?.paysOmmers];
  assert.deepEqual(facts(parse({}, [])), [true, false]);
  assert.deepEqual(facts(parse({}, [HASH])), [true, true]);
  assert.deepEqual(facts(parse({ difficulty: 0n }, [])), [false, false]);
});
