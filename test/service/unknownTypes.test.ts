import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { bloomOfLogs } from "../../src/ethereum/bloom.ts";
import { formatData, ZERO_ADDRESS } from "../../src/ethereum/hex.ts";
import {
  createTypedChain,
  type Fields,
  type TypedChain,
  type TypedChainOptions,
  type TypedHandlers,
  typedHandlers,
} from "../support/builders/typedBlocks.ts";
import { rpc } from "../support/clients/rpc.ts";
import { createFakeNode, type FakeNode } from "../support/fakes/fakeNode.ts";
import { createService, type Service } from "../support/servers/service.ts";

/** Celo's type of a transaction that pays its fee in a token. */
const UNKNOWN = 0x7b;
const HEIGHT = 20;
/** OP Sepolia, which has a time for Lagoon. */
const LAGOON_CHAIN = 11_155_420;
const PROOF = "x-forebay-proof";

interface Stage {
  readonly typed: TypedChain;
  readonly nodes: readonly FakeNode[];
  readonly service: Service;
}

/** Starts a service. The first node is asked first. */
const start = async (
  t: TestContext,
  options: Partial<TypedChainOptions>,
  nodesOf: readonly TypedHandlers[] = [{}],
): Promise<Stage> => {
  const typed = createTypedChain({ chainId: 4_242, height: HEIGHT, types: [0x7e, 2, UNKNOWN, 0], ...options });
  const nodes: FakeNode[] = [];
  for (const handlers of nodesOf) {
    const node = await createFakeNode({ chain: typed.chain, handlers: typedHandlers(typed, handlers) });
    t.after(() => node.close());
    nodes.push(node);
  }
  const service = await createService({
    nodes: nodes.map(({ url }, priority) => ({ url, name: `node${priority}`, priority: Math.min(priority, 1) })),
    ...{ blockTimeMs: 20_000, pending: { mode: "node" }, forks: "none", state: { follow: false } },
    upstream: { hedge: { maxShare: 0 } },
  });
  t.after(() => service.close());
  return { typed, nodes, service };
};

const labelOf = (headers: Headers): string => (headers.get(PROOF) ?? "").split(";")[0] ?? "";

/** Asks for each block and its receipts. Returns the label of each answer, and requires the right results. */
const readAll = async ({
  typed,
  service,
}: Stage): Promise<Readonly<Record<"block" | "receipts", readonly string[]>>> => {
  const labels = { block: [] as string[], receipts: [] as string[] };
  for (const { number, hash, full, receipts } of typed.blocks.slice(1)) {
    const block = await rpc(service.url, "eth_getBlockByHash", [hash, true]);
    assert.equal(JSON.stringify(block.body.result), JSON.stringify(full), `block ${number}`);
    labels.block.push(labelOf(block.headers));
    const list = await rpc(service.url, "eth_getBlockReceipts", [hash]);
    assert.equal(JSON.stringify(list.body.result), JSON.stringify(receipts), `receipts of ${number}`);
    labels.receipts.push(labelOf(list.headers));
  }
  return { block: [...new Set(labels.block)], receipts: [...new Set(labels.receipts)] };
};

const withTransaction = (block: Fields, at: number, change: Fields): Fields => ({
  ...block,
  transactions: (block.transactions as readonly Fields[]).map((each, index) =>
    index === at && typeof each === "object" ? { ...each, ...change } : each,
  ),
});
const withReceipt = (list: Fields, at: number, change: Fields): unknown =>
  (list as unknown as readonly Fields[]).map((each, index) => (index === at ? { ...each, ...change } : each));

/** Adds a log, and its bits to the bloom. Everything else is right. */
const withForgedLog = (receipt: Fields): Fields => {
  const { blockHash, blockNumber, transactionHash, transactionIndex } = receipt;
  const log = { address: ZERO_ADDRESS, topics: [], data: "0x" } as const;
  const place = { blockHash, blockNumber, transactionHash, transactionIndex, logIndex: "0x0" };
  return { ...receipt, logs: [{ ...log, ...place }], logsBloom: formatData(bloomOfLogs([log])) };
};

/** Bodies of known transactions and statuses of known receipts that are not right. */
const FORGER: TypedHandlers["lies"] = {
  eth_getBlockByHash: (block) => withTransaction(block, 1, { value: "0x2" }),
  eth_getBlockByNumber: (block) => withTransaction(block, 1, { value: "0x2" }),
  eth_getBlockReceipts: (list) => withReceipt(list, 1, { status: "0x0" }),
};

test("a block with a transaction of an unknown type is served, stated, and its receipts are checked by their root", async (t) => {
  const stage = await start(t, {});
  assert.deepEqual(await readAll(stage), { block: ["stated"], receipts: ["checked"] });
});

test("with the bytes of the unknown transaction, the whole list follows from the root", async (t) => {
  const stage = await start(t, {}, [{ hasRaws: true }]);
  assert.deepEqual(await readAll(stage), { block: ["checked"], receipts: ["checked"] });
  assert.equal(stage.nodes[0]?.count("eth_getRawTransactionByHash"), HEIGHT);
});

test("receipts of an unknown encoding are stated, or checked by their bytes", async (t) => {
  const without = await start(t, { hasOwnReceipts: true });
  assert.deepEqual(await readAll(without), { block: ["stated"], receipts: ["stated"] });
  assert.equal(without.nodes[0]?.count("debug_getRawReceipts"), 1, "a node that has no bytes is asked once");
  const withBytes = await start(t, { hasOwnReceipts: true }, [{ hasRaws: true }]);
  assert.deepEqual(await readAll(withBytes), { block: ["checked"], receipts: ["checked"] });
});

test("an unknown type is no outage if the other node does not respond", async (t) => {
  const stage = await start(t, { hasOwnReceipts: true }, [{}, {}]);
  Object.assign(stage.nodes[1]?.faults ?? {}, { answer: "reset" });
  assert.deepEqual(await readAll(stage), { block: ["stated"], receipts: ["stated"] });
});

for (const [name, lies, others] of [
  ["bodies and statuses", FORGER, {}],
  ["bodies and statuses, without the bytes that the other node has", FORGER, { hasRaws: true }],
  [
    "a known transaction in place of the unknown one",
    { eth_getBlockByHash: (block) => withTransaction(block, 2, { type: "0x2" }) },
    {},
  ],
  ["a gas of receipts", { eth_getBlockReceipts: (list) => withReceipt(list, 3, { gasUsed: "0x9c41" }) }, {}],
] as const satisfies readonly (readonly [string, TypedHandlers["lies"], TypedHandlers])[]) {
  test(`one of two nodes forges ${name}: each is found`, async (t) => {
    const stage = await start(t, {}, [{ lies }, others]);
    await readAll(stage);
  });
}

test("a node that forges the status of receipts of an unknown encoding is found by their bytes", async (t) => {
  const stage = await start(t, { hasOwnReceipts: true }, [{ hasRaws: true, lies: FORGER }, { hasRaws: true }]);
  assert.deepEqual(await readAll(stage), { block: ["checked"], receipts: ["checked"] });
});

test("a node that forges the bytes of receipts too is found by their root", async (t) => {
  const lies: TypedHandlers["lies"] = {
    eth_getBlockReceipts: (list) => withReceipt(list, 1, { status: "0x0" }),
    debug_getRawReceipts: (raws) =>
      (raws as unknown as readonly string[]).map((raw) => raw.replace(/^(0x02f9.{4})01/, "$180")),
  };
  const stage = await start(t, { hasOwnReceipts: true }, [{ hasRaws: true, lies }, { hasRaws: true }]);
  assert.deepEqual(await readAll(stage), { block: ["checked"], receipts: ["checked"] });
});

test("a node that forges a log of receipts of an unknown encoding is found by the bloom of their block", async (t) => {
  const lies: TypedHandlers["lies"] = {
    eth_getBlockReceipts: (list) =>
      (list as unknown as readonly Fields[]).map((each, index) => (index === 1 ? withForgedLog(each) : each)),
  };
  const stage = await start(t, { hasOwnReceipts: true }, [{ lies }, {}]);
  assert.deepEqual(await readAll(stage), { block: ["stated"], receipts: ["stated"] });
});

test("a type that one node alone shows costs a read of another node, and no wrong answer", async (t) => {
  const lies: TypedHandlers["lies"] = {
    eth_getBlockByHash: (block) => withTransaction(block, 1, { type: "0x55", value: "0x2" }),
    eth_getBlockReceipts: (list) => withReceipt(list, 1, { type: "0x55", status: "0x0" }),
    eth_getTransactionByHash: (transaction) => ({ ...transaction, type: "0x55", value: "0x2" }),
  };
  const stage = await start(t, { types: [0x7e, 2, 2] }, [{ lies }, {}]);
  for (const { full } of stage.typed.blocks) {
    const [, transaction] = full.transactions;
    const { body } = await rpc(stage.service.url, "eth_getTransactionByHash", [transaction?.hash]);
    assert.deepEqual(body.result, transaction);
  }
  assert.deepEqual(await readAll(stage), { block: ["checked"], receipts: ["checked"] });
});

for (const chainId of [LAGOON_CHAIN, 4_242]) {
  test(`blocks with refunds on chain ${chainId} are checked as others, and so is each refund`, async (t) => {
    const types = [0x7e, 2, 0, 2, 0x7d];
    const honest = await start(t, { types, chainId });
    assert.deepEqual(await readAll(honest), { block: ["checked"], receipts: ["checked"] });
    const { typed, service } = honest;
    const last = typed.blocks.at(-1);
    for (const [index, receipt] of last?.receipts.entries() ?? []) {
      const { body, headers } = await rpc(service.url, "eth_getTransactionReceipt", [receipt.transactionHash]);
      assert.deepEqual([body.result, labelOf(headers)], [receipt, "checked"]);
      const hash = last?.full.transactions[index]?.hash;
      const found = await rpc(service.url, "eth_getTransactionByHash", [hash]);
      assert.deepEqual([found.body.result, labelOf(found.headers)], [last?.full.transactions[index], "checked"]);
    }
  });

  for (const [name, lies] of [
    ["a refund", { eth_getBlockReceipts: (list) => withReceipt(list, 1, { opGasRefund: "0x1" }) }],
    [
      "a refund of another transaction",
      { eth_getBlockReceipts: (list) => withReceipt(list, 2, { opGasRefund: "0x1388" }) },
    ],
    ["the payload", { eth_getBlockByHash: (block) => withTransaction(block, 4, { input: "0xc801" }) }],
    ["a status", { eth_getBlockReceipts: (list) => withReceipt(list, 4, { status: "0x0" }) }],
  ] as const satisfies readonly (readonly [string, TypedHandlers["lies"]])[]) {
    test(`one of two nodes of chain ${chainId} forges ${name} of blocks with refunds: each is found`, async (t) => {
      const stage = await start(t, { types: [0x7e, 2, 0, 2, 0x7d], chainId }, [{ lies }, {}]);
      assert.deepEqual(await readAll(stage), { block: ["checked"], receipts: ["checked"] });
    });
  }
}

test("a single receipt with a forged refund is found by the block's own transactions", async (t) => {
  const lies: TypedHandlers["lies"] = { eth_getTransactionReceipt: (receipt) => ({ ...receipt, opGasRefund: "0x1" }) };
  const { typed, service } = await start(t, { types: [0x7e, 2, 0x7d], chainId: LAGOON_CHAIN }, [{ lies }, {}]);
  for (const { receipts } of typed.blocks.slice(1)) {
    const { body } = await rpc(service.url, "eth_getTransactionReceipt", [receipts[1]?.transactionHash]);
    assert.deepEqual(body.result, receipts[1]);
  }
});
