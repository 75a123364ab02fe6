import assert from "node:assert/strict";
import { test } from "node:test";
import type { Grade } from "../../src/core/grade.ts";
import { UnverifiedError } from "../../src/core/node.ts";
import { type BlockHeader, formatHeader, hashHeader } from "../../src/ethereum/blockHeader.ts";
import { createBloom } from "../../src/ethereum/bloom.ts";
import { type Data, formatData, type Hash, parseData, ZERO_ADDRESS, ZERO_HASH } from "../../src/ethereum/hex.ts";
import { keccak256Hex } from "../../src/ethereum/keccak.ts";
import { orderedTrieRoot } from "../../src/ethereum/orderedTrie.ts";
import { encodeReceipt } from "../../src/ethereum/receipt.ts";
import { encodeBytes, encodeList, encodeNumber } from "../../src/ethereum/rlp.ts";
import { type Call, createCall } from "../../src/jsonrpc/call.ts";
import { encodeRpcTransaction } from "../../src/verification/encodeRpcTransaction.ts";
import { Evidence } from "../../src/verification/evidence.ts";
import { Verifier } from "../../src/verification/verifier.ts";
import { evidenceNodes } from "../support/builders/evidenceNodes.ts";
import { hashOf } from "../support/builders/flashblocks.ts";
import { createContext, createRequest } from "../support/builders/request.ts";
import { silent } from "../support/builders/silent.ts";

type Fields = Readonly<Record<string, unknown>>;

const GAS = 21_000n;
const DEPOSIT = 0x7e;
const RECIPIENT = `0x${"22".repeat(20)}`;
const quantity = (value: bigint | number): string => `0x${value.toString(16)}`;
const encode = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value));

interface TestBlock {
  readonly block: Fields;
  readonly hash: Hash;
  readonly receipts: readonly Fields[];
}

const encodeTransaction = (fields: Fields): Uint8Array => encodeRpcTransaction(fields) ?? new Uint8Array();

const AMSTERDAM = {
  ...{ withdrawalsRoot: ZERO_HASH, blobGasUsed: 0n, excessBlobGas: 0n, parentBeaconBlockRoot: ZERO_HASH },
  ...{ requestsHash: ZERO_HASH, blockAccessListHash: ZERO_HASH, slotNumber: 1n },
};

interface BlockForm {
  /** Every receipt has this state root instead of its status, as before Byzantium. */
  readonly root?: Hash;
  /** The receipts of deposits have a nonce and a version. */
  readonly hasDepositNonce?: boolean;
}

/** Returns a sealed block of transactions of these types, with its receipts. The last transaction failed. */
const createBlock = (
  number: bigint,
  types: readonly number[],
  forkFields: Partial<BlockHeader> = {},
  { root, hasDepositNonce = false }: BlockForm = {},
): TestBlock => {
  const hasNonce = (type: number): boolean => hasDepositNonce && type === DEPOSIT;
  const bare = types.map((type, nonce) => ({
    ...{ type: quantity(type), nonce: quantity(nonce), gasPrice: "0x1", gas: quantity(GAS), to: RECIPIENT },
    ...{ value: "0x0", input: "0x", v: "0x1b", r: quantity(number), s: "0x1", chainId: "0x1" },
    ...{ maxFeePerGas: "0x1", maxPriorityFeePerGas: "0x1", from: ZERO_ADDRESS, sourceHash: ZERO_HASH },
  }));
  const statuses = types.map((_, index) => index < types.length - 1);
  const consensus = types.map((type, index) => ({
    ...{ type, status: root ?? statuses[index] === true, cumulativeGasUsed: GAS * BigInt(index + 1) },
    ...{ logs: [], logsBloom: createBloom() },
    ...(hasNonce(type) && { depositNonce: 5n, depositReceiptVersion: 1n }),
  }));
  const header = {
    ...({ parentHash: ZERO_HASH, miner: ZERO_ADDRESS, stateRoot: ZERO_HASH, mixHash: ZERO_HASH } as const),
    ...{ extraData: "0x" as const, logsBloom: createBloom(), baseFeePerGas: 7n },
    ...{ number, gasLimit: 30_000_000n, gasUsed: GAS * BigInt(types.length), timestamp: 1_700_000_000n },
    transactionsRoot: orderedTrieRoot(bare.map(encodeTransaction)),
    receiptsRoot: orderedTrieRoot(consensus.map(encodeReceipt)),
    ...forkFields,
  };
  const hash = hashHeader(header);
  const transactions = bare.map((fields, index) => ({
    ...fields,
    ...{ hash: keccak256Hex(encodeTransaction(fields)), transactionIndex: quantity(index) },
    ...{ blockHash: hash, blockNumber: quantity(number) },
  }));
  const receipts = transactions.map(({ hash: transactionHash, transactionIndex, type, to }, index) => ({
    ...{ blockHash: hash, blockNumber: quantity(number), transactionHash, transactionIndex, type, to },
    ...(root === undefined ? { status: statuses[index] ? "0x1" : "0x0" } : { root }),
    ...(hasNonce(Number(type)) && { depositNonce: "0x5", depositReceiptVersion: "0x1" }),
    ...{ gasUsed: quantity(GAS), contractAddress: null },
    ...{ cumulativeGasUsed: quantity(GAS * BigInt(index + 1)), logs: [], logsBloom: formatData(createBloom()) },
  }));
  return { block: { ...formatHeader(header, hash), transactions }, hash, receipts };
};

interface Stage {
  readonly sent: readonly Call[];
  /** Verifies a result of a node, given as a value or as JSON text. Returns its proof. Throws UnverifiedError. */
  verify(method: string, param: unknown, result: unknown, name?: string): Promise<Grade | undefined>;
}

/** Creates a verifier of a chain. Each node answers `block` to requests of the verifier. */
const start = (block: () => unknown, nodes: readonly string[] = ["only"]): Stage => {
  const sent: Call[] = [];
  const evidence = new Evidence(
    { chain: "test", nodes: evidenceNodes(...nodes), off: [], onWrongAnswer: () => {} },
    silent(),
  );
  const pool = { check: () => Promise.reject(new Error("not expected")) };
  const verifier = new Verifier("full", evidence, pool);
  const node = {
    send: async (call: Call) => {
      sent.push(call);
      return encode(block());
    },
  };
  const verify: Stage["verify"] = async (method, param, result, name = "only") => {
    const call = createCall(method, Array.isArray(param) ? param : [param]);
    const verifiedCall = { node: { ...node, name }, call, request: createRequest(call), context: createContext() };
    const body = typeof result === "string" ? Buffer.from(result) : encode(result);
    return (await verifier.verify(verifiedCall, body)).grade;
  };
  return { sent, verify };
};

const hashesOf = ({ transactions }: Fields): readonly unknown[] =>
  (transactions as readonly Fields[]).map(({ hash }) => hash);

const isCertain = (expected: boolean) => (error: unknown) =>
  error instanceof UnverifiedError && error.isCertain === expected;

const RECEIPT = "eth_getTransactionReceipt";

test("a single receipt is compared with the verified receipts of its block, without a request", async () => {
  const { block, hash, receipts } = createBlock(5n, [0, 0, 0]);
  const { sent, verify } = start(() => block);
  await verify("eth_getBlockReceipts", hash, receipts);
  const before = sent.length;
  for (const receipt of receipts) {
    const { transactionHash, status } = receipt;
    await verify(RECEIPT, transactionHash, receipt);
    const lie = { ...receipt, status: status === "0x1" ? "0x0" : "0x1" };
    await assert.rejects(verify(RECEIPT, transactionHash, lie), isCertain(true));
  }
  assert.equal(sent.length, before);
});

test("a second block hash in a receipt or transaction does not hide the known block", async () => {
  const { block, hash, receipts } = createBlock(5n, [0, 0]);
  const { verify } = start(() => block);
  await verify("eth_getBlockReceipts", hash, receipts);
  const [first = {}] = receipts;
  const text = JSON.stringify({ ...first, status: "0x0" });
  const [transaction] = block.transactions as readonly Fields[];
  for (const hidden of [`"${ZERO_HASH}"`, "null"]) {
    // The last of two equal keys counts for a client.
    const twice = (object: string) => `{"blockHash":${hidden},"blockNumber":"0x1",${object.slice(1)}`;
    await assert.rejects(verify(RECEIPT, first.transactionHash, twice(text)), isCertain(true));
    const byHash = verify("eth_getTransactionByHash", first.transactionHash, twice(JSON.stringify(transaction)));
    await assert.rejects(byHash, isCertain(true));
  }
  await verify(RECEIPT, first.transactionHash, {
    ...first,
    blockHash: null,
    blockNumber: null,
    transactionIndex: null,
  });
  await verify("eth_getTransactionByHash", first.transactionHash, { ...transaction, blockHash: null });
});

test("a second hash or number in a block does not hide the block that it has", async () => {
  const { block, hash } = createBlock(5n, [0, 0]);
  const { verify } = start(() => block);
  const hidden = [
    `"hash":"${ZERO_HASH}","number":"0x5"`,
    `"hash":"${hash}","number":"0x6"`,
    '"hash":null,"number":"0x5"',
    `"\\u0068ash":"${ZERO_HASH}","hash":"${ZERO_HASH}","number":"0x5"`,
  ];
  const calls = [
    ["eth_getBlockByNumber", ["0x5", true], block],
    ["eth_getBlockByHash", [hash, true], block],
    ["eth_getHeaderByNumber", ["0x5"], { ...block, transactions: undefined }],
  ] as const;
  for (const [method, named, object] of calls) {
    for (const members of hidden) {
      const text = `{${members},${JSON.stringify(object).slice(1)}`;
      await assert.rejects(verify(method, named, text), isCertain(true), `${method} ${members}`);
    }
    await verify(method, named, object);
  }
});

test("a second hash or number in the first receipt of a block does not hide the one that it has", async () => {
  const { block, hash, receipts } = createBlock(5n, [0, 0]);
  const { verify } = start(() => block);
  const hideIn = (list: readonly Fields[], members: string) => `[{${members},${JSON.stringify(list).slice(2)}`;
  const moved = receipts.map((receipt) => ({ ...receipt, blockHash: ZERO_HASH }));
  for (const named of ["0x5", hash]) {
    await verify("eth_getBlockReceipts", named, receipts);
    const other = hideIn(moved, `"blockHash":"${hash}","blockNumber":"0x5"`);
    await assert.rejects(verify("eth_getBlockReceipts", named, other), isCertain(true));
  }
});

test("the gas of a receipt is compared since EIP-7778 too: only the header's gas is another sum", async () => {
  const { block, hash, receipts } = createBlock(5n, [0, 0], AMSTERDAM);
  const { verify } = start(() => block);
  const [first = {}] = receipts;
  await verify("eth_getBlockReceipts", hash, receipts);
  await assert.rejects(verify(RECEIPT, first.transactionHash, { ...first, gasUsed: "0x1" }), isCertain(true));
  await assert.rejects(verify(RECEIPT, first.transactionHash, { ...first, status: "0x0" }), isCertain(true));
});

test("if the receipts of a block name another transaction than a single receipt, the block decides", async () => {
  const { block, hash, receipts } = createBlock(5n, [0, 0, 0]);
  const swapped = receipts.map((receipt, index) => ({
    ...receipt,
    transactionHash: receipts[receipts.length - 1 - index]?.transactionHash,
  }));
  const [first = {}] = receipts;
  let answer: unknown = block;
  const { sent, verify } = start(() => answer);
  // The receipts root does not cover the hashes of transactions.
  await verify("eth_getBlockReceipts", hash, swapped);
  answer = null;
  await assert.rejects(verify(RECEIPT, first.transactionHash, first), isCertain(false));
  answer = block;
  await verify(RECEIPT, first.transactionHash, first);
  const before = sent.length;
  await verify(RECEIPT, first.transactionHash, first);
  await assert.rejects(verify(RECEIPT, swapped[0]?.transactionHash, swapped[0]), isCertain(true));
  assert.equal(sent.length, before);
});

test("receipts with deposits show that the encoding of other receipts is known too", async () => {
  const { block, hash, receipts } = createBlock(5n, [0x7e, 2]);
  const { verify } = start(() => block);
  await verify("eth_getBlockReceipts", hash, receipts);
  const [, unknown = {}] = createBlock(6n, [0x7e, 2]).receipts;
  const lie = { ...unknown, logsBloom: `0x${"01".repeat(256)}` };
  await assert.rejects(verify(RECEIPT, unknown.transactionHash, lie), isCertain(true));
});

test("receipts of deposits alone show nothing about the encoding of others", async () => {
  const { block, hash, receipts } = createBlock(5n, [0x7e]);
  const { verify } = start(() => block);
  await verify("eth_getBlockReceipts", hash, receipts);
  const [, unknown = {}] = createBlock(6n, [0x7e, 2]).receipts;
  await verify(RECEIPT, unknown.transactionHash, { ...unknown, logsBloom: `0x${"01".repeat(256)}` });
});

test("before Byzantium, a node may return a status instead of the state root", async () => {
  const { block, hash, receipts } = createBlock(5n, [0, 0], {}, { root: ZERO_HASH });
  const { verify } = start(() => block, ["one", "other"]);
  await verify("eth_getBlockReceipts", hash, receipts, "one");
  const [{ root: _, ...receipt } = {}] = receipts;
  await verify(RECEIPT, receipt.transactionHash, { ...receipt, status: "0x1" }, "other");
});

test("a node may omit the nonce and the version of a deposit's receipt", async () => {
  const { block, hash, receipts } = createBlock(5n, [DEPOSIT, 2], {}, { hasDepositNonce: true });
  const { verify } = start(() => block, ["one", "other"]);
  await verify("eth_getBlockReceipts", hash, receipts, "one");
  const [{ depositReceiptVersion: _, ...receipt } = {}, plain = {}] = receipts;
  await verify(RECEIPT, receipt.transactionHash, receipt, "other");
  const { depositNonce: __, ...bare } = receipt;
  await verify(RECEIPT, receipt.transactionHash, bare, "other");
  const lie = verify(RECEIPT, plain.transactionHash, { ...plain, status: "0x1" }, "other");
  await assert.rejects(lie, isCertain(true));
});

test("receipts under a header whose hash nobody can compute are no measure for other nodes", async () => {
  const { block, receipts } = createBlock(5n, [0, 0]);
  const withHash = (list: readonly Fields[]): Fields[] => list.map((each) => ({ ...each, blockHash: hashOf(1) }));
  const transactions = withHash(block.transactions as readonly Fields[]);
  const unknown = { ...block, hash: hashOf(1), newField: "0x1", transactions };
  const { verify } = start(() => unknown, ["one", "other"]);
  // Once all nodes have returned the field, headers with it are accepted.
  for (const name of ["one", "other"]) {
    await verify("eth_getBlockByHash", hashOf(1), { ...unknown, transactions: hashesOf(block) }, name).catch(
      () => undefined,
    );
  }
  assert.equal(await verify("eth_getBlockReceipts", hashOf(1), withHash(receipts), "one"), undefined, "no proof");
  const [first = {}] = withHash(receipts);
  await verify(RECEIPT, first.transactionHash, { ...first, status: "0x0" }, "other");
});

const BY_HASH = "eth_getBlockByHash";
const COUNT = "eth_getBlockTransactionCountByHash";

test("a block is proven if its header binds all of it", async () => {
  const { block, hash, receipts } = createBlock(5n, [0, 0]);
  const { verify } = start(() => block);
  const withHashes = { ...block, transactions: hashesOf(block) };
  const { transactions: _, ...header } = block;
  assert.equal(await verify("eth_getUncleCountByBlockHash", hash, '"0x0"'), undefined, "the header is not known");
  assert.equal(await verify("eth_getHeaderByHash", hash, header), "proven");
  assert.equal(await verify(COUNT, hash, '"0x2"'), undefined);
  assert.equal(await verify(BY_HASH, hash, withHashes), "checked", "the list of hashes is under no root");
  assert.equal(await verify(BY_HASH, [hash, true], block), "checked", "no hash binds a sender");
  assert.equal(await verify(BY_HASH, hash, withHashes), "proven");
  assert.equal(await verify(BY_HASH, hash, { ...withHashes, transactions: [] }).catch(() => "wrong"), "wrong");
  await assert.rejects(
    verify(BY_HASH, hash, { ...withHashes, transactions: hashesOf(block).toReversed() }),
    isCertain(true),
  );
  assert.equal(await verify(COUNT, hash, '"0x2"'), "proven");
  await assert.rejects(verify(COUNT, hash, '"0x3"'), isCertain(true));
  assert.equal(await verify("eth_getBlockReceipts", hash, receipts), "checked");
  assert.equal(await verify("eth_getUncleCountByBlockHash", hash, '"0x0"'), "proven");
  await assert.rejects(verify("eth_getUncleCountByBlockHash", hash, '"0x1"'), isCertain(true));
  assert.equal(await verify(BY_HASH, hash, null), undefined);
});

test("uncles and withdrawals that the header does not bind are not proven", async () => {
  const withdrawal = { index: "0x1", validatorIndex: "0x2", address: RECIPIENT, amount: "0x3" };
  const encoded = encodeList([
    ...[encodeNumber(1n), encodeNumber(2n)],
    ...[encodeBytes(parseData(RECIPIENT as Data)), encodeNumber(3n)],
  ]);
  const { block, hash } = createBlock(5n, [], { withdrawalsRoot: orderedTrieRoot([encoded]) });
  const { verify } = start(() => block);
  assert.equal(await verify(BY_HASH, hash, { ...block, withdrawals: [withdrawal], uncles: [] }), "proven");
  const lies = [[], [withdrawal, withdrawal], [{ ...withdrawal, amount: "0x4" }], [{}], "0x"];
  for (const withdrawals of lies) {
    assert.equal(await verify(BY_HASH, hash, { ...block, withdrawals }), "checked", JSON.stringify(withdrawals));
  }
  assert.equal(await verify(BY_HASH, hash, { ...block, uncles: [hashOf(1)] }), "checked");
});

test("a header whose hash nobody can compute proves nothing", async () => {
  const { block } = createBlock(5n, []);
  const lie = { ...block, hash: hashOf(1), newField: "0x1" };
  const { verify } = start(() => lie, ["only"]);
  assert.equal(await verify(BY_HASH, hashOf(1), lie), undefined);
});
