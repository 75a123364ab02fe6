import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { keccak256 } from "viem";
import { rpc } from "../support/clients/rpc.ts";
import { settled } from "../support/clients/settled.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode, type FakeNode, type FakeNodeOptions } from "../support/fakes/fakeNode.ts";
import { FakeError } from "../support/fakes/front.ts";
import { createService } from "../support/servers/service.ts";

const ADDRESS = `0x${"11".repeat(20)}`;
const RAW = `0x02${"c0".repeat(10)}` as const;

const start = async (t: TestContext, handlers: FakeNodeOptions["handlers"] = {}, nodes = 1) => {
  const chain = createFakeChain({ height: 20 });
  const options = { chain, handlers: { eth_getBlockTransactionCountByHash: () => "0x0", ...handlers } };
  const fakes = await Promise.all(Array.from({ length: nodes }, () => createFakeNode(options)));
  const service = await createService({
    nodes: fakes.map(({ url }) => ({ url })),
    blockTimeMs: 10_000,
    pending: { mode: "node" },
  });
  t.after(async () => {
    await Promise.all(fakes.map((node) => node.close()));
    await service.close();
  });
  await settled(service);
  return { chain, fakes, ask: (method: string, params: readonly unknown[]) => rpc(service.url, method, params) };
};

const PROOF = {
  ...{ address: ADDRESS, accountProof: [], balance: "0x0", nonce: "0x0", storageProof: [] },
  ...{ codeHash: `0x${"22".repeat(32)}`, storageHash: `0x${"33".repeat(32)}` },
};

/** Throws the error of a node that accepts only a block number. */
const numberOnly = (result: unknown, position: number) => (params: readonly unknown[]) => {
  if (typeof params[position] === "object") {
    throw new FakeError(-32_602, `invalid argument ${position}: json: cannot unmarshal object into Go value`);
  }
  return result;
};

test("a node that supports block hashes for some methods only gets the others by number", async (t) => {
  const { fakes, ask } = await start(t, {
    eth_getBlockReceipts: numberOnly([], 0),
    eth_getProof: numberOnly(PROOF, 2),
    debug_getRawBlock: numberOnly("0xc0", 0),
    // The equivalent method by hash is missing.
    eth_getHeaderByNumber: () => ({ number: "0x14" }),
  });
  const reads: readonly (readonly [string, readonly unknown[], unknown])[] = [
    ["eth_getBlockReceipts", ["latest"], []],
    ["eth_getProof", [ADDRESS, [], "latest"], PROOF],
    ["debug_getRawBlock", ["latest"], "0xc0"],
    ["eth_getHeaderByNumber", ["latest"], { number: "0x14" }],
  ];
  for (const [method, params, result] of reads) {
    assert.deepEqual((await ask(method, params)).body.result, result);
  }
  const before = fakes.map((node) => node.count(...reads.map(([method]) => method), "eth_getHeaderByHash"));
  for (const [method, params, result] of reads) {
    assert.deepEqual((await ask(method, params)).body.result, result);
  }
  const after = fakes.map((node) => node.count(...reads.map(([method]) => method), "eth_getHeaderByHash"));
  assert.deepEqual(after, [(before[0] ?? 0) + reads.length], "the form that it refused is not tried again");
  // State is still requested by hash, and cached.
  await ask("eth_getBalance", [ADDRESS, "latest"]);
  assert.match((await ask("eth_getBalance", [ADDRESS, "latest"])).headers.get("cache-status") ?? "", /hit/);
});

test("invalid parameters of a client do not mark a node as one without block hashes", async (t) => {
  const { fakes, ask } = await start(t, {
    eth_call: ([transaction]) => {
      if (JSON.stringify(transaction).includes("0xbad0")) {
        throw new FakeError(-32_602, "invalid value");
      }
      return "0x01";
    },
  });
  const call = (value: string) => ask("eth_call", [{ to: ADDRESS, value }, "latest"]);
  assert.equal((await call("0xbad0")).body.error?.code, -32_602);
  assert.equal((await call("0x1")).body.result, "0x01");
  assert.match((await call("0x1")).headers.get("cache-status") ?? "", /hit/);
  assert.equal(fakes[0]?.count("eth_call"), 3);
});

test("reads by number at one block do not wait for reads at another", async (t) => {
  const { chain, fakes, ask } = await start(t);
  const [node] = fakes as [FakeNode];
  Object.assign(node.faults, { refusesBlockHash: true });
  await ask("eth_getStorageAt", [ADDRESS, "0x0", "0x14"]);
  Object.assign(node.faults, { answer: "hang", methods: ["eth_getBlockByNumber"] });
  const hanging = node.asked("eth_getBlockByNumber");
  const other = ask("eth_getStorageAt", [ADDRESS, "0x0", "0x14"]).then(() => "the other read");
  await hanging;
  node.faults.answer = undefined;
  const read = ask("eth_getStorageAt", [ADDRESS, "0x0", "0x13"]).then(({ body }) => body.result);
  assert.equal(await Promise.race([other, read]), chain.blocks[19]?.hash);
  node.release();
  await other;
});

test("polling for a submitted transaction costs each node one request and one presence check", async (t) => {
  const { fakes, ask } = await start(t, {}, 2);
  await ask("eth_sendRawTransaction", [RAW]);
  const counts = () =>
    fakes.map((node) => [node.count("eth_getTransactionReceipt"), node.count("eth_getBlockByNumber")]);
  const before = counts();
  assert.equal((await ask("eth_getTransactionReceipt", [keccak256(RAW)])).body.result, null);
  assert.deepEqual(
    counts(),
    before.map(([receipts = 0, blocks = 0]) => [receipts + 1, blocks + 1]),
  );
});

/** A node of two machines. The machine that reports the head now is one block behind the previous one. */
const behind = (t: TestContext, handlers: FakeNodeOptions["handlers"]) => {
  let isBehind = false;
  const chain = createFakeChain({ height: 20 });
  const started = start(t, {
    ...handlers,
    eth_getBlockByNumber: ([tag]) => {
      const tags: Record<string, number> = { latest: isBehind ? 19 : 20, safe: 16, finalized: 12 };
      return chain.blocks[tags[String(tag)] ?? Number(tag)]?.json ?? null;
    },
  });
  return started.then(async ({ ask, fakes }) => {
    isBehind = true;
    // Above every head: heads are read again.
    await ask("eth_getBlockByNumber", ["0x20", false]);
    return { ask, fakes };
  });
};

test("responses by hash of a node with several machines are cached, whichever machine reported the newest block", async (t) => {
  const { ask } = await behind(t, { eth_getCode: () => "0x" });
  assert.equal(
    (await ask("eth_getCode", [ADDRESS, "latest"])).headers.get("cache-status"),
    "forebay; fwd=miss; stored",
  );
  assert.match((await ask("eth_getCode", [ADDRESS, "latest"])).headers.get("cache-status") ?? "", /hit/);
});

test("a machine that is behind is retried, whichever machine reported the newest block", async (t) => {
  let lacking = 3;
  const { ask } = await behind(t, {
    eth_getCode: () => {
      if (--lacking >= 0) {
        throw new FakeError(-32_000, "header not found");
      }
      return "0x01";
    },
  });
  assert.equal((await ask("eth_getCode", [ADDRESS, "latest"])).body.result, "0x01");
});

test("fee history of a block that a machine does not have yet is retried", async (t) => {
  let lacking = 1;
  const { ask } = await start(t, {
    eth_feeHistory: () => {
      if (--lacking >= 0) {
        throw new FakeError(-32_000, "request beyond head block: requested 20, head 19");
      }
      return { oldestBlock: "0x14" };
    },
  });
  assert.deepEqual((await ask("eth_feeHistory", ["0x1", "latest", []])).body.result, { oldestBlock: "0x14" });
});

test("receipts with requireCanonical are not served once the block is not canonical", async (t) => {
  const { chain, ask } = await start(t, {
    eth_getBlockReceipts: ([block]) => {
      const found = chain.blocks.find(({ hash }) => JSON.stringify(block).includes(hash));
      if (found === undefined) {
        throw new FakeError(-32_000, "hash is not currently canonical");
      }
      return [{ blockHash: found.hash, blockNumber: found.json.number }];
    },
  });
  chain.mine();
  const params = [{ blockHash: chain.latest.hash, requireCanonical: true }];
  assert.equal((await ask("eth_getBlockReceipts", params)).body.error, undefined);
  chain.reorg(1, 2);
  assert.equal((await ask("eth_getBlockReceipts", params)).body.error?.message, "hash is not currently canonical");
});

test("an empty receipt list of a block that used gas is retried", async (t) => {
  const chain = createFakeChain({ height: 20 });
  const used = (number: number) => ({ ...chain.blocks[number]?.json, gasUsed: "0x5208" });
  const receipts = [{ blockHash: chain.latest.hash, blockNumber: "0x14" }];
  let lacking = 2;
  const { ask } = await start(t, {
    eth_getBlockByNumber: ([tag]) => {
      const tags: Record<string, number> = { latest: 20, safe: 16, finalized: 12 };
      return used(tags[String(tag)] ?? Number(tag));
    },
    eth_getBlockReceipts: () => (--lacking >= 0 ? [] : receipts),
  });
  const answer = await ask("eth_getBlockReceipts", ["latest"]);
  assert.deepEqual(answer.body.result, receipts);
  assert.equal(answer.headers.get("cache-status"), "forebay; fwd=miss; stored");
});

test("a transaction of a known block is retried until the machine has the block", async (t) => {
  const chain = createFakeChain({ height: 20 });
  const hash = `0x${"ab".repeat(32)}`;
  const block = { ...chain.latest.json, transactions: [{ hash, blockHash: chain.latest.hash }] };
  const receipt = { transactionHash: hash, blockHash: chain.latest.hash, blockNumber: "0x14" };
  let lacking = 2;
  const { ask } = await start(t, {
    eth_getBlockByHash: () => block,
    eth_getTransactionReceipt: () => (--lacking >= 0 ? null : receipt),
  });
  assert.deepEqual((await ask("eth_getBlockByNumber", ["latest", true])).body.result, block);
  assert.deepEqual((await ask("eth_getTransactionReceipt", [hash])).body.result, receipt);
});

test("a transaction of a replaced block only is null at once, and the null is cached", async (t) => {
  const hash = `0x${"ab".repeat(32)}`;
  const blocks: { hash?: string; json?: object } = {};
  const { chain, fakes, ask } = await start(t, {
    eth_getBlockByHash: ([wanted]) => (wanted === blocks.hash ? blocks.json : null),
    eth_getTransactionReceipt: () => null,
  });
  Object.assign(blocks, { hash: chain.latest.hash, json: { ...chain.latest.json, transactions: [{ hash }] } });
  assert.deepEqual((await ask("eth_getBlockByNumber", ["latest", true])).body.result, blocks.json);
  chain.reorg(1, 2);
  // A number above the head makes it follow.
  await ask("eth_getBlockByNumber", [`0x${chain.latest.number.toString(16)}`, false]);
  assert.equal((await ask("eth_getTransactionReceipt", [hash])).body.result, null);
  assert.equal(fakes[0]?.count("eth_getTransactionReceipt"), 1);
  const again = await ask("eth_getTransactionReceipt", [hash]);
  assert.equal(again.headers.get("cache-status"), "forebay; hit; detail=memory");
});

test("the null of a node that does not show the view's block is asked of the next node", async (t) => {
  const chain = createFakeChain({ height: 20 });
  const { number, hash } = chain.latest;
  const transactionHash = `0x${"5a".repeat(32)}`;
  const receipt = { transactionHash, blockHash: hash, blockNumber: `0x${number.toString(16)}` };
  const [first, second] = await Promise.all(
    [null, receipt].map((known) => createFakeNode({ chain, handlers: { eth_getTransactionReceipt: () => known } })),
  );
  assert.ok(first && second);
  // One provider: no second origin is asked.
  const nodes = [first, second].map(({ url }, priority) => ({ url, provider: "one", priority }));
  const service = await createService({ nodes, blockTimeMs: 10_000, pending: { mode: "node" }, verify: "off" });
  t.after(async () => {
    await Promise.all([first, second].map((node) => node.close()));
    await service.close();
  });
  Object.assign(first.faults, { error: { code: -32_000, message: "overloaded" }, methods: ["eth_getBlockByNumber"] });
  const { body } = await rpc(service.url, "eth_getTransactionReceipt", [transactionHash]);
  assert.deepEqual(body.result, receipt);
  assert.equal(first.count("eth_getTransactionReceipt"), 1);
});
