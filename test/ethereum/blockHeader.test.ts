import assert from "node:assert/strict";
import { test } from "node:test";
import { createBlockHeaderFromRLP } from "@ethereumjs/block";
import { Common, Hardfork, Mainnet } from "@ethereumjs/common";
import { type BlockHeader, blockSize, encodeHeader, formatHeader, hashHeader } from "../../src/ethereum/blockHeader.ts";
import { formatData, type Hash, ZERO_ADDRESS, ZERO_HASH } from "../../src/ethereum/hex.ts";

const root: Hash = `0x${"5a".repeat(32)}`;
const header: BlockHeader = {
  parentHash: root,
  miner: ZERO_ADDRESS,
  stateRoot: ZERO_HASH,
  transactionsRoot: `0x${"1a".repeat(32)}`,
  receiptsRoot: `0x${"2a".repeat(32)}`,
  logsBloom: new Uint8Array(256),
  number: 21_000_000n,
  gasLimit: 400_000_000n,
  gasUsed: 0n,
  timestamp: 1_793_901_600n,
  extraData: "0x01",
  mixHash: root,
  baseFeePerGas: 5_000_000n,
  withdrawalsRoot: root,
  blobGasUsed: 0n,
  excessBlobGas: 0n,
  parentBeaconBlockRoot: root,
  requestsHash: root,
};

/** Asserts that the library parses our bytes to the same fields and the same hash. */
const readByLibrary = (fields: BlockHeader, hardfork: Hardfork) => {
  const common = new Common({ chain: Mainnet, hardfork });
  const library = createBlockHeaderFromRLP(encodeHeader(fields), { common });
  assert.equal(hashHeader(fields), formatData(library.hash()));
  assert.equal(formatData(library.serialize()), formatData(encodeHeader(fields)));
  return library.toJSON();
};

test("the library finds every field in its place", () => {
  const { hash, miner, sha3Uncles, receiptsRoot, transactionsRoot, ...fields } = formatHeader(header, ZERO_HASH);
  assert.equal(hash, ZERO_HASH);
  assert.deepEqual(readByLibrary(header, Hardfork.Prague), {
    ...fields,
    coinbase: miner,
    uncleHash: sha3Uncles,
    receiptTrie: receiptsRoot,
    transactionsTrie: transactionsRoot,
  });
});

test("a header ends where its fork ends", () => {
  const { withdrawalsRoot, ...merge } = header;
  assert.ok(withdrawalsRoot);
  readByLibrary(merge, Hardfork.Paris);
});

test("typed transactions are encoded as strings in a block", () => {
  const empty = Number(blockSize(header, []));
  assert.equal(Number(blockSize(header, [Uint8Array.of(0xc1, 0x80)])), empty + 2);
  assert.equal(Number(blockSize(header, [Uint8Array.of(0x02, 0xc1, 0x80)])), empty + 4);
});
