import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { formatData, type Hex, parseData } from "../../src/ethereum/hex.ts";
import { orderedTrieRoot } from "../../src/ethereum/orderedTrie.ts";
import { POST_EXEC_TYPE, parsePostExec } from "../../src/ethereum/postExec.ts";
import { checkBody, type ResponseChecks } from "../../src/verification/checkBody.ts";
import { encodeRpcTransaction } from "../../src/verification/encodeRpcTransaction.ts";
import type { Finding } from "../../src/verification/findings.ts";
import { rpc } from "../support/clients/rpc.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { createService } from "../support/servers/service.ts";
import { readJson } from "./vectorFolder.ts";

type Fields = Readonly<Record<string, unknown>>;

interface Call {
  readonly method: string;
  readonly params: readonly unknown[];
}

interface SendReport {
  readonly request: Call;
  readonly right: { readonly error: { readonly code: number } };
}

interface LagoonBlock {
  readonly chainId: number;
  readonly block: Fields & { readonly transactions: readonly Fields[] };
  readonly receipts: readonly Fields[];
  readonly rawTransactions: readonly Hex[];
  readonly requests: readonly (Call & { readonly right: unknown })[];
}

const { chainId, block, receipts, rawTransactions, requests } = readJson("reports/24-lagoon-block.json") as LagoonBlock;
const { transactions } = block;
const refunded = 1;
const last = transactions.length - 1;

const find = (value: unknown, checks: ResponseChecks): readonly Finding[] =>
  checkBody(Buffer.from(JSON.stringify(value)), checks);
const outcomes = (findings: readonly Finding[]): string[] => [...new Set(findings.map(({ outcome }) => outcome))];

const BLOCK = { kind: "block", location: {}, checksHashes: true, transactions: "full" } as const;
const checkBlock = (changed: Fields, hasLagoon = true) =>
  find({ ...block, ...changed }, { ...BLOCK, facts: { hasLagoon } });
const known = checkBlock({}).at(-1)?.transactions;

const HEADER = {
  ...{ hash: String(block.hash), number: BigInt(String(block.number)), receiptsRoot: String(block.receiptsRoot) },
  ...{ logsBloom: String(block.logsBloom), isComputed: true },
};
const checkList = (list: readonly Fields[], standardTypes: readonly number[] = [POST_EXEC_TYPE]) =>
  find(list, { kind: "receipts", location: {}, header: HEADER, facts: { transactions: known, standardTypes } });

const replaced = <T>(list: readonly T[], at: number, change: Partial<T>): readonly T[] =>
  list.map((item, index) => (index === at ? { ...item, ...change } : item));

test("a block with a post-exec transaction has the hash of its header and the root of its transactions", () => {
  assert.equal(
    formatData(parsePostExec(parseData(rawTransactions[last] ?? "0x"))?.raw ?? new Uint8Array()),
    "0x7dc80110c5c401821388",
  );
  const raws = transactions.map((fields) => formatData(encodeRpcTransaction(fields) ?? new Uint8Array()));
  assert.deepEqual(raws, rawTransactions);
  assert.equal(orderedTrieRoot(raws.map(parseData)), block.transactionsRoot);
  for (const hasLagoon of [true, false]) {
    assert.deepEqual(outcomes(checkBlock({}, hasLagoon)), ["passed"]);
  }
  assert.ok(known !== undefined);
});

test("members that nodes add to a post-exec transaction and its receipt reject nothing", () => {
  const added = {
    ...{
      gasPrice: "0x3b9aca00",
      blockTimestamp: block.timestamp,
      nonce: "0x0",
      chainId: "0xaa37dc",
      to: `0x${"00".repeat(20)}`,
    },
    payload: { version: 1, blockNumber: 16, gasRefundEntries: [{ index: 1, gasRefund: 5_000 }] },
  };
  assert.deepEqual(outcomes(checkBlock({ transactions: replaced(transactions, last, added) })), ["passed"]);
  const stated = { l1Fee: "0x1ae917a28", l1GasUsed: "0x640", blobGasUsed: "0x9c40", opGasRefund: null };
  for (const to of [undefined, null, `0x${"00".repeat(20)}`]) {
    assert.deepEqual(outcomes(checkList(replaced(receipts, last, { ...stated, to }))), ["passed"]);
  }
});

const FORGED: Readonly<Record<string, Fields>> = {
  "another refund": { input: "0xc80110c5c401821389" },
  "another block": { input: "0xc80111c5c401821388" },
  "another version": { input: "0xc80210c5c401821388" },
  "no list": { input: "0x" },
  "another hash": { hash: transactions[0]?.hash },
  "another place": { transactionIndex: "0x1" },
  "a value": { value: "0x1" },
  gas: { gas: "0x5208" },
  "a sender": { from: transactions[0]?.from },
};

for (const [name, change] of Object.entries(FORGED)) {
  test(`a forged post-exec transaction is wrong on a chain with Lagoon: ${name}`, () => {
    const forged = checkBlock({ transactions: replaced(transactions, last, change) });
    assert.ok(outcomes(forged).includes("failed"), outcomes(forged).join());
    const single = { ...transactions[last], ...change };
    const location = { hash: String(block.hash), index: BigInt(last) };
    const hash = String(transactions[last]?.hash);
    const findings = find(single, {
      kind: "transaction",
      hash,
      location,
      checksHashes: true,
      facts: { hasLagoon: true },
      block: known,
    });
    assert.ok(outcomes(findings).includes("failed"));
  });
}

test("a refund of a deposit, of itself, or in the middle of a block is wrong", () => {
  const [deposit, signed, postExec] = transactions;
  for (const list of [
    [deposit, postExec, signed],
    [signed, postExec, deposit],
  ]) {
    assert.ok(outcomes(checkBlock({ transactions: list })).includes("failed"));
  }
});

test("the receipts of a block with refunds have its root, and each forged one is found", () => {
  assert.deepEqual(outcomes(checkList(receipts)), ["passed"]);
  // The root shows the encoding, also if the type is not known.
  assert.deepEqual(outcomes(checkList(receipts, [])), ["passed"]);
  const changes: readonly (readonly [number, Fields])[] = [
    [0, { status: "0x0" }],
    [refunded, { status: "0x0" }],
    [refunded, { gasUsed: "0xafc8" }],
    [refunded, { cumulativeGasUsed: "0x16378" }],
    [refunded, { opGasRefund: "0x1389" }],
    [refunded, { to: transactions[0]?.to }],
    [0, { opGasRefund: "0x1388" }],
    [last, { status: "0x0" }],
    [last, { gasUsed: "0x1" }],
    [last, { opGasRefund: "0x1388" }],
    [last, { transactionHash: transactions[0]?.hash }],
  ];
  for (const [at, change] of changes) {
    const name = `${at} ${JSON.stringify(change)}`;
    assert.ok(outcomes(checkList(replaced(receipts, at, change))).includes("failed"), name);
    const single = { ...receipts[at], ...change };
    const hash = String(receipts[at]?.transactionHash);
    const of = checkList(receipts).at(-1)?.receipts;
    const findings = find(single, {
      kind: "receipt",
      hash,
      checksHashes: true,
      block: known,
      receipts: of,
      header: HEADER,
    });
    // Nodes omit fields of deposits' receipts, so that no digest of them is compared.
    assert.ok(at === 0 && "status" in change ? true : outcomes(findings).includes("failed"), name);
  }
  for (const [at, receipt] of receipts.entries()) {
    const hash = String(transactions[at]?.hash);
    const of = checkList(receipts).at(-1)?.receipts;
    assert.deepEqual(
      outcomes(find(receipt, { kind: "receipt", hash, checksHashes: true, block: known, receipts: of })),
      ["passed"],
    );
  }
});

/** A node whose newest block is that of the report. It has no block between that and its first one. */
const startService = async (t: TestContext) => {
  const chain = createFakeChain({ chainId });
  const isOfReport = (id: unknown): boolean => id === block.hash || (id !== "earliest" && Number(id) !== 0);
  const getBlock = ([id, isFull]: readonly unknown[]): unknown => {
    const own = { ...block, transactions: isFull === true ? transactions : transactions.map(({ hash }) => hash) };
    return isOfReport(id) ? own : chain.blocks[0]?.json;
  };
  const blockId = (id: unknown): unknown => (typeof id === "object" && id !== null ? Reflect.get(id, "blockHash") : id);
  const node = await createFakeNode({
    chain,
    handlers: {
      eth_getBlockByNumber: ([id, isFull]) =>
        typeof id === "string" && id.startsWith("0x") && ![0, Number(block.number)].includes(Number(id))
          ? null
          : getBlock([id, isFull]),
      eth_getBlockByHash: getBlock,
      eth_getBlockReceipts: ([id]) => (isOfReport(blockId(id)) ? receipts : []),
      eth_getTransactionByHash: ([hash]) => transactions.find((each) => each.hash === hash) ?? null,
      eth_getTransactionReceipt: ([hash]) => receipts.find((each) => each.transactionHash === hash) ?? null,
      eth_getRawTransactionByHash: ([hash]) =>
        rawTransactions[transactions.findIndex((each) => each.hash === hash)] ?? null,
      eth_getTransactionByBlockHashAndIndex: ([, index]) => transactions[Number(index)] ?? null,
      eth_getTransactionByBlockNumberAndIndex: ([, index]) => transactions[Number(index)] ?? null,
      eth_getLogs: () => receipts.flatMap(({ logs }) => logs),
    },
  });
  t.after(() => node.close());
  const service = await createService({ nodes: [{ url: node.url }], blockTimeMs: 60_000, pending: { mode: "node" } });
  t.after(() => service.close());
  return { node, service };
};

test("each request for the block has the right answer, and none is only stated", async (t) => {
  const { service } = await startService(t);
  for (const { method, params, right } of requests) {
    const { body, headers, text } = await rpc(service.url, method, params);
    const name = `${method} ${JSON.stringify(params)}`;
    assert.deepEqual(body.result, right, `${name} ${text.slice(0, 300)}`);
    assert.ok(method === "eth_getLogs" || !(headers.get("x-forebay-proof") ?? "").startsWith("stated"), name);
  }
});

test("a post-exec transaction is refused before it is sent", async (t) => {
  const { node, service } = await startService(t);
  const { request, right } = readJson("reports/26-send-post-exec.json") as SendReport;
  const { body } = await rpc(service.url, request.method, request.params);
  assert.equal(body.error?.code, right.error.code);
  assert.equal(node.count(request.method), 0);
});
