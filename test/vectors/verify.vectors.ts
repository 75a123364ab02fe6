import assert from "node:assert/strict";
import { test } from "node:test";
import type { BlockTransactions } from "../../src/verification/blockRows.ts";
import { checkBody, type ResponseChecks } from "../../src/verification/checkBody.ts";
import type { Finding } from "../../src/verification/findings.ts";
import { readVectorChain } from "./vectorChain.ts";
import { type Exchange, readVectors } from "./vectorFolder.ts";
import { xzText } from "./xzText.ts";

type Fields = Readonly<Record<string, unknown>>;

const find = (value: unknown, checks: ResponseChecks): readonly Finding[] =>
  checkBody(Buffer.from(JSON.stringify(value)), checks);

const areRight = (findings: readonly Finding[], name: string): void => {
  assert.ok(findings.length > 0, name);
  for (const { check, outcome } of findings) {
    assert.equal(outcome, "passed", `${name}: ${check}`);
  }
};

const headerOf = ({ hash, number, receiptsRoot, logsBloom }: Fields) => ({
  ...{ hash: String(hash), number: BigInt(String(number)), receiptsRoot: String(receiptsRoot) },
  ...{ logsBloom: String(logsBloom), isComputed: true },
});

const results = (pattern: RegExp): { name: string; request: Exchange["request"]; result: Fields }[] =>
  readVectors()
    .filter(({ method }) => pattern.test(method))
    .flatMap(({ name, exchanges }) =>
      exchanges.flatMap(({ request, response: { result } }) =>
        typeof result === "object" && result !== null ? [{ name, request, result: result as Fields }] : [],
      ),
    )
    // A block that is being built has no hash.
    .filter(({ request, result }) => request.params?.[0] !== "pending" && result.hash !== null);

/** The transactions of a block, as a verified response leaves them for later checks. */
const transactionsIn = (block: Fields): BlockTransactions | undefined =>
  find(block, { kind: "block", location: {}, transactions: "full", checksHashes: true }).at(-1)?.transactions;

test("geth: transactions and receipts match the full transactions of their blocks", () => {
  const blocks = new Map<string, BlockTransactions>();
  for (const { result } of results(/^eth_getBlockBy(Number|Hash)$/)) {
    const known = transactionsIn(result);
    if (known !== undefined) {
      blocks.set(known.hash, known);
    }
  }
  let compared = 0;
  for (const { name, result } of results(/^eth_getTransaction(By|Receipt)/)) {
    const block = blocks.get(String(result.blockHash));
    if (block === undefined) {
      continue;
    }
    compared++;
    const hash = String(result.transactionHash ?? result.hash);
    const kind = result.transactionHash === undefined ? "transaction" : "receipt";
    areRight(find(result, { kind, hash, location: {}, checksHashes: true, block }), name);
  }
  for (const { name, result } of results(/^eth_getBlockReceipts$/)) {
    const list = result as unknown as readonly Fields[];
    const fields = readVectorChain()[Number(list[0]?.blockNumber ?? 0)]?.fields;
    const transactions = blocks.get(String(list[0]?.blockHash));
    if (fields !== undefined && transactions !== undefined) {
      compared++;
      areRight(find(list, { kind: "receipts", location: {}, header: headerOf(fields), facts: { transactions } }), name);
    }
  }
  assert.ok(compared > 5, `${compared} compared`);
});

test("geth: every block has the hash of its header, and full transactions make its root", () => {
  const blocks = results(/^eth_getBlockBy(Number|Hash)$/);
  assert.ok(blocks.length > 5);
  for (const { name, result } of blocks) {
    areRight(find(result, { kind: "block", location: {}, checksHashes: true }), name);
  }
});

test("geth: every block of the chain file has the hash of its header", () => {
  for (const { number, hash, fields } of readVectorChain()) {
    const location = { number: BigInt(number), hash };
    const { transactions: _, ...header } = fields;
    areRight(find(header, { kind: "block", location, checksHashes: true }), `block ${number}`);
  }
});

test("geth: every transaction has the hash of its fields", () => {
  const transactions = results(/^eth_getTransactionBy/);
  assert.ok(transactions.length > 5);
  for (const { name, result } of transactions) {
    areRight(find(result, { kind: "transaction", location: {}, checksHashes: true }), name);
  }
});

test("geth: every receipt has the bloom of its logs, and block receipts make their root", () => {
  for (const { name, result } of results(/^eth_getTransactionReceipt$/)) {
    areRight(find(result, { kind: "receipt", hash: String(result.transactionHash), checksHashes: true }), name);
  }
  const chain = readVectorChain();
  const all = results(/^eth_getBlockReceipts$/);
  assert.ok(all.length > 2);
  for (const { name, result } of all) {
    const [first] = result as unknown as readonly Fields[];
    const block = chain[Number(first?.blockNumber ?? 0)];
    if (first === undefined || block === undefined) {
      continue;
    }
    areRight(find(result, { kind: "receipts", location: {}, header: headerOf(block.fields) }), name);
  }
});

test("a Base builder: blocks with deposits and their receipts are right", () => {
  const lines = xzText("real-blocks/base-builder-98a8db8d.jovian.1000ms-200ms.sealed.jsonl.xz").trim().split("\n");
  for (const line of lines) {
    const { block, receipts } = JSON.parse(line) as { block: Fields; receipts: readonly unknown[] };
    const name = `block ${block.number}`;
    areRight(find(block, { kind: "block", location: {}, checksHashes: true }), name);
    const transactions = transactionsIn(block);
    assert.ok(transactions, name);
    areRight(
      find(receipts, { kind: "receipts", location: {}, header: headerOf(block), facts: { transactions } }),
      name,
    );
  }
});
