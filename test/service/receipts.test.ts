import assert from "node:assert/strict";
import { after, before, type TestContext, test } from "node:test";
import { metric, rpc } from "../support/clients/rpc.ts";
import { settled } from "../support/clients/settled.ts";
import { type Fields, flip } from "../support/fakes/answerLie.ts";
import { type Lie, type LyingNode, startLyingNode } from "../support/fakes/lyingNode.ts";
import { type BlockSummary, createSealedChain, type SealedChain } from "../support/servers/sealedChain.ts";
import { createService, type Service } from "../support/servers/service.ts";
import { untilFilled } from "../support/servers/untilFilled.ts";

const RECEIPT = "eth_getTransactionReceipt";
/** The headers of this many blocks are in memory. */
const HEADERS = 256;
/** With few blocks the block ring is filled in one step. */
const EMPTY_BLOCKS = 24;

let chain: SealedChain;
before(async () => {
  chain = await createSealedChain(EMPTY_BLOCKS);
});
after(() => chain.devnet.close());

interface Stage {
  readonly service: Service;
  /** It is asked first. */
  readonly preferred: LyingNode;
  readonly nodes: readonly LyingNode[];
}

const start = async (t: TestContext, origins: number): Promise<Stage> => {
  const nodes = await Promise.all(Array.from({ length: origins }, () => startLyingNode(t, chain.devnet.anvilUrl)));
  const service = await createService({
    nodes: nodes.map(({ url }, index) => ({ name: `node${index}`, url, priority: Math.min(index, 1) })),
    ...{
      pending: { mode: "node" },
      finality: { depth: 40 },
      upstream: { hedge: { maxShare: 0 } },
      state: { follow: false },
    },
  });
  t.after(() => service.close());
  await settled(service);
  const [preferred] = nodes;
  assert.ok(preferred);
  return { service, preferred, nodes };
};

const ask = async ({ url }: Service, method: string, ...params: readonly unknown[]): Promise<unknown> => {
  const { body, text } = await rpc(url, method, params);
  assert.equal(body.error, undefined, text);
  return body.result;
};

const truthOf = (method: string, ...params: readonly unknown[]): Promise<unknown> =>
  chain.devnet.rpc(method, ...params);

/** Returns a transaction of the newest blocks that has logs. */
const transactionWithLogs = async (): Promise<string> => {
  for (const hash of chain.recent.flatMap(({ transactions }) => transactions)) {
    const { logs } = Object(await truthOf(RECEIPT, hash));
    if (logs.length > 0) {
      return hash;
    }
  }
  throw new Error("no transaction has logs");
};

const countCalls = (nodes: readonly LyingNode[], method: string): number =>
  nodes.reduce((sum, { calls }) => sum + (calls.get(method) ?? 0), 0);

const lieOf = (name: string, change: (receipt: Fields) => unknown): Lie => ({
  ...{ name, methods: [RECEIPT], result: (result) => (result === null ? result : change(Object(result))) },
});

const LIES: readonly Lie[] = [
  lieOf("another status", (receipt) => ({ ...receipt, status: receipt.status === "0x1" ? "0x0" : "0x1" })),
  lieOf("other gas", flip("gasUsed")),
  lieOf("no logs", (receipt) => ({ ...receipt, logs: [], logsBloom: `0x${"00".repeat(256)}` })),
];

const newest = (): BlockSummary => chain.recent.at(-1) ?? { number: "0x0", hash: "", transactions: [] };

for (const lie of LIES) {
  test(`the first receipt of a block is true although the preferred of three nodes states ${lie.name}`, async (t) => {
    const { service, preferred, nodes } = await start(t, 3);
    await untilFilled(service);
    preferred.lies = [lie];
    const hash = await transactionWithLogs();
    assert.deepEqual(await ask(service, RECEIPT, hash), await truthOf(RECEIPT, hash));
    assert.equal(preferred.lied.get(lie.name), 1, "the node was asked");
    assert.equal(await metric(service.opsUrl, "forebay_upstream_suspended", 'node="node0"'), 1);
    assert.equal(countCalls(nodes, "eth_getBlockReceipts"), 1);
  });
}

test("the receipts of a block that was read cost no further call", async (t) => {
  const { service, nodes } = await start(t, 3);
  await untilFilled(service);
  const { transactions } = newest();
  for (const hash of transactions) {
    assert.deepEqual(await ask(service, RECEIPT, hash), await truthOf(RECEIPT, hash));
  }
  assert.ok(transactions.length > 1);
  assert.equal(countCalls(nodes, RECEIPT), 1);
  assert.equal(countCalls(nodes, "eth_getBlockReceipts"), 1);
});

test("nodes that refuse the receipts of blocks are not asked for them with each receipt", async (t) => {
  const { service, nodes } = await start(t, 2);
  await untilFilled(service);
  const error = { code: -32_601, message: "the method eth_getBlockReceipts does not exist" };
  for (const node of nodes) {
    node.lies = [
      {
        ...{ name: "no receipts of blocks", methods: ["eth_getBlockReceipts"] },
        response: (_, { id }) => ({ jsonrpc: "2.0", id, error }),
      },
    ];
  }
  const hashes = chain.recent.flatMap(({ transactions }) => transactions);
  const before: number[] = [];
  for (const hash of hashes) {
    assert.deepEqual(await ask(service, RECEIPT, hash), await truthOf(RECEIPT, hash));
    before.push(countCalls(nodes, "eth_getBlockReceipts"));
  }
  assert.ok(hashes.length > 8, `${hashes.length} receipts`);
  assert.equal(before.at(-1), before.at(-3), before.join());
});

test("with one origin, a receipt costs one call", async (t) => {
  const { service, nodes } = await start(t, 1);
  const [hash] = newest().transactions;
  assert.deepEqual(await ask(service, RECEIPT, hash), await truthOf(RECEIPT, hash));
  assert.equal(countCalls(nodes, RECEIPT), 1);
  assert.equal(countCalls(nodes, "eth_getBlockReceipts"), 0);
});

const upper = (hex: unknown): string => String(hex).toUpperCase().replace("0X", "0x");

const NO_BLOCK_RECEIPTS: Lie = {
  ...{ name: "unsupported", methods: ["eth_getBlockReceipts"] },
  response: (_, { id }) => ({ jsonrpc: "2.0", id, error: { code: -32_601, message: "the method does not exist" } }),
};

test("with two origins and no block receipts, a receipt is compared with that of the other origin", async (t) => {
  const { service, preferred, nodes } = await start(t, 3);
  for (const node of nodes) {
    node.lies = [NO_BLOCK_RECEIPTS];
  }
  const [hash, other] = newest().transactions;
  assert.deepEqual(await ask(service, RECEIPT, other), await truthOf(RECEIPT, other));
  assert.equal(countCalls(nodes, RECEIPT), 2);
  preferred.lies = [NO_BLOCK_RECEIPTS, ...LIES.slice(0, 1)];
  assert.deepEqual(await ask(service, RECEIPT, hash), await truthOf(RECEIPT, hash));
  assert.equal(countCalls(nodes, RECEIPT), 5, "the third origin decides");
  const ofOtherForm = lieOf("form", (receipt) => ({ ...receipt, newField: "0x1", from: upper(receipt.from) }));
  preferred.lies = [NO_BLOCK_RECEIPTS, ofOtherForm];
  const [third] = chain.recent.at(-2)?.transactions ?? [];
  await ask(service, RECEIPT, third);
  assert.equal(countCalls(nodes, RECEIPT), 7, "digits and fields outside the protocol are no difference");
});

for (const method of [RECEIPT, "eth_getTransactionByHash"]) {
  test(`${method}: null needs two origins`, async (t) => {
    const { service, preferred } = await start(t, 2);
    // A machine that lags behind the URL of the node, whose head another machine has reported.
    preferred.lies = [{ name: "null", methods: [method], result: () => null }];
    const [hash] = newest().transactions;
    assert.deepEqual(await ask(service, method, hash), await truthOf(method, hash));
    const missing = `0x${"ab".repeat(32)}`;
    assert.equal(await ask(service, method, missing), null);
  });
}

for (const method of [RECEIPT, "eth_getTransactionByHash"]) {
  test(`${method}: a transaction of the served head is found although a machine of the one node lags`, async (t) => {
    const [from, to] = chain.accounts;
    const hash = await chain.devnet.rpc("eth_sendTransaction", { from, to, value: "0x1" });
    await chain.devnet.rpc("anvil_mine", "0x1");
    const { service, preferred } = await start(t, 1);
    let count = 0;
    preferred.lies = [{ name: "null", methods: [method], result: (result) => (count++ === 0 ? null : result) }];
    assert.deepEqual(await ask(service, method, hash), await truthOf(method, hash));
    assert.equal(count, 2);
  });
}

test("a receipt of an old block is compared with that of another origin, and a lie is found by the block", async (t) => {
  await chain.devnet.rpc("anvil_mine", `0x${(HEADERS + 8).toString(16)}`);
  const { service, preferred, nodes } = await start(t, 3);
  const [first, second] = newest().transactions;
  assert.deepEqual(await ask(service, RECEIPT, first), await truthOf(RECEIPT, first));
  assert.equal(countCalls(nodes, RECEIPT), 2);
  assert.equal(countCalls(nodes, "eth_getBlockReceipts"), 0);
  assert.deepEqual(await ask(service, RECEIPT, first), await truthOf(RECEIPT, first));
  assert.equal(countCalls(nodes, RECEIPT), 2, "it is cached");
  preferred.lies = LIES.slice(0, 1);
  assert.deepEqual(await ask(service, RECEIPT, second), await truthOf(RECEIPT, second));
  assert.equal(await metric(service.opsUrl, "forebay_upstream_suspended", 'node="node0"'), 1);
  assert.equal(countCalls(nodes, "eth_getBlockReceipts"), 1);
});

test("without block receipts, null of the preferred origin is not replaced by what one other alone states of an old block", async (t) => {
  const { service, preferred, nodes } = await start(t, 2);
  for (const node of nodes) {
    node.lies = [NO_BLOCK_RECEIPTS];
  }
  preferred.lies = [NO_BLOCK_RECEIPTS, lieOf("null", () => null)];
  assert.equal(await ask(service, RECEIPT, newest().transactions[0]), null);
  assert.equal(countCalls(nodes, RECEIPT), 2);
});
