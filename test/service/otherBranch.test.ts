import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { metric, rpc } from "../support/clients/rpc.ts";
import { settled } from "../support/clients/settled.ts";
import { until } from "../support/clients/until.ts";
import { createFakeChain, type FakeBlock, type FakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode, type FakeNode } from "../support/fakes/fakeNode.ts";
import { FakeError } from "../support/fakes/front.ts";
import { createService, type Service, type ServiceChain } from "../support/servers/service.ts";

const ADDRESS = `0x${"11".repeat(20)}`;
const HASH = `0x${"ab".repeat(32)}`;
const HEIGHT = 20;
const FINAL = 10;
const REORGANISED = `0x${(HEIGHT - 1).toString(16)}`;
const SLOWER_MS = 150;

const blockAt = ({ blocks }: FakeChain, tag: unknown, latest: FakeBlock | undefined): FakeBlock["json"] | null => {
  const tags: Record<string, FakeBlock | undefined> = { latest, safe: blocks[FINAL], finalized: blocks[FINAL] };
  return (tags[String(tag)] ?? blocks[Number(tag)])?.json ?? null;
};

/** Starts a forebay in front of these nodes, which end with it. */
const serve = async (
  t: TestContext,
  nodes: readonly FakeNode[],
  more: Partial<ServiceChain> = {},
): Promise<Service> => {
  const service = await createService({
    nodes: nodes.map(({ url }) => ({ url })),
    ...{ blockTimeMs: 10_000, pending: { mode: "node" } },
    ...more,
  });
  t.after(async () => {
    await service.close();
    await Promise.all(nodes.map((node) => node.close()));
  });
  await settled(service);
  return service;
};

/** Starts a forebay with a node of several machines. One reports the head. The others respond, and are on another branch. */
const start = async (t: TestContext, refusesBlockHash: boolean) => {
  const chain = createFakeChain({ height: HEIGHT });
  const { latest } = chain;
  let isBehind = true;
  const node = await createFakeNode({
    chain,
    handlers: {
      eth_getBlockByNumber: ([tag]) => blockAt(chain, tag, isBehind ? latest : chain.latest),
      eth_getBlockReceipts: () => [],
      eth_getTransactionByHash: () => ({ hash: HASH, blockHash: null, blockNumber: null }),
      eth_getBlockTransactionCountByHash: () => "0x0",
    },
  });
  node.faults.refusesBlockHash = refusesBlockHash;
  const service = await serve(t, [node]);
  chain.reorg(3, 3);
  return {
    opsUrl: service.opsUrl,
    ask: async (method: string, params: readonly unknown[]) => (await rpc(service.url, method, params)).body,
    chain,
    follow: () => {
      isBehind = false;
    },
  };
};

/** Creates a node of the served chain, and one of a branch that forks below its finalized block. */
const createBranches = async () => {
  const chain = createFakeChain({ height: 41 });
  const dead = createFakeChain({ height: 40 });
  dead.reorg(20, 20);
  const handlers = { eth_getBlockTransactionCountByHash: () => "0x0" };
  const [served, other] = await Promise.all([
    createFakeNode({ chain, handlers }),
    createFakeNode({ chain: dead, handlers }),
  ]);
  return { chain, dead, served, other };
};

describe("a node on another branch", { concurrency: true }, () => {
  for (const refusesBlockHash of [false, true]) {
    const kind = refusesBlockHash ? "without EIP-1898" : "with EIP-1898";
    test(`a node ${kind} on another branch is ignored until the heads follow it`, async (t) => {
      const { ask, chain, follow, opsUrl } = await start(t, refusesBlockHash);
      const reads: readonly (readonly [string, readonly unknown[]])[] = [
        ["eth_getStorageAt", [ADDRESS, "0x0", REORGANISED]],
        ["eth_getBlockReceipts", [REORGANISED]],
        ["eth_getBlockByNumber", [REORGANISED, false]],
        ["eth_getTransactionReceipt", [HASH]],
        ["eth_getTransactionByHash", [HASH]],
      ];
      for (const { error, result } of await Promise.all(reads.map(([method, params]) => ask(method, params)))) {
        assert.deepEqual([error?.code, result], [-32_000, undefined]);
        assert.match(error?.message ?? "", /header not found|header for hash not found/);
      }
      assert.ok((await metric(opsUrl, "forebay_upstream_requests_total", 'outcome="otherBranch"')) >= reads.length - 1);
      follow();
      const { hash } = chain.blocks[HEIGHT - 1] ?? {};
      assert.equal((await ask("eth_getStorageAt", [ADDRESS, "0x0", REORGANISED])).result, hash);
      assert.deepEqual((await ask("eth_getBlockReceipts", [REORGANISED])).result, []);
      assert.equal((await ask("eth_getTransactionReceipt", [HASH])).result, null);
    });
  }

  test("a transaction of a block above the served head is returned when the head follows, and is an error before", async (t) => {
    const chain = createFakeChain({ height: HEIGHT });
    const { latest } = chain;
    let isBehind = true;
    const placed = { blockHash: "", blockNumber: `0x${(HEIGHT + 1).toString(16)}` };
    const receipt = { transactionHash: HASH, ...placed };
    const transaction = { hash: HASH, ...placed };
    const node = await createFakeNode({
      chain,
      handlers: {
        eth_getBlockByNumber: ([tag]) => blockAt(chain, tag, isBehind ? latest : chain.latest),
        eth_getTransactionReceipt: () => receipt,
        eth_getTransactionByHash: () => transaction,
        eth_getBlockTransactionCountByHash: () => "0x0",
      },
    });
    const service = await serve(t, [node], { verify: "cheap" });
    chain.mine();
    receipt.blockHash = chain.latest.hash;
    transaction.blockHash = chain.latest.hash;
    const methods = ["eth_getTransactionReceipt", "eth_getTransactionByHash"];
    const ask = () => Promise.all(methods.map(async (method) => (await rpc(service.url, method, [HASH])).body));
    for (const { error, result } of await ask()) {
      assert.deepEqual([error?.code, result], [-32_000, undefined]);
    }
    const asked = node.asked("eth_getTransactionReceipt");
    const answers = ask();
    await asked;
    isBehind = false;
    const results = (await answers).map(({ result }) => result);
    assert.deepEqual(results, [receipt, transaction]);
  });

  test("a fee history that ends below its block is retried, and an error if that does not help", async (t) => {
    const chain = createFakeChain({ height: HEIGHT });
    const complete = { oldestBlock: `0x${(HEIGHT - 1).toString(16)}`, baseFeePerGas: ["0x7", "0x7", "0x7"] };
    let answers = 0;
    let shortAnswers = 2;
    const node = await createFakeNode({
      chain,
      handlers: {
        eth_feeHistory: () => ({ ...complete, gasUsedRatio: answers++ < shortAnswers ? [0.5] : [0.5, 0.25] }),
        eth_getBlockTransactionCountByHash: () => "0x0",
      },
    });
    const service = await serve(t, [node]);
    const ask = async (percentiles: readonly number[]) =>
      (await rpc(service.url, "eth_feeHistory", ["0x2", "latest", percentiles])).body;
    assert.deepEqual((await ask([])).result, { ...complete, gasUsedRatio: [0.5, 0.25] });
    shortAnswers = Number.POSITIVE_INFINITY;
    const { error, result } = await ask([50]);
    assert.deepEqual([error?.code, result], [-32_000, undefined]);
  });

  test("logs wait for a node that has reported an older head than the served one", async (t) => {
    const node = await createFakeNode({
      chain: createFakeChain({ height: HEIGHT }),
      handlers: { eth_getBlockTransactionCountByHash: () => "0x0" },
    });
    const service = await serve(t, [node]);
    node.faults.lag = 1;
    await service.chains[0]?.upstreams.heads.refresh();
    const logs = rpc(service.url, "eth_getLogs", [{ fromBlock: REORGANISED, toBlock: `0x${HEIGHT.toString(16)}` }]);
    await node.asked("eth_getBlockByNumber");
    await node.asked("eth_getBlockByNumber");
    node.faults.lag = undefined;
    const { body } = await logs;
    assert.deepEqual([body.error, body.result], [undefined, []]);
  });

  test("a node whose branch forks below the finalized block is ignored for final blocks too", async (t) => {
    const { chain, dead, served, other } = await createBranches();
    const service = await serve(t, [served, other]);
    const ask = async (block: number) =>
      (await rpc(service.url, "eth_getStorageAt", [ADDRESS, "0x0", `0x${block.toString(16)}`])).body;
    Object.assign(served.faults, { error: { code: 429, message: "too many requests" }, methods: ["eth_getStorageAt"] });
    assert.notEqual((await ask(30)).result, dead.blocks[30]?.hash);
    served.faults.error = undefined;
    await until(async () => (await ask(30)).result === chain.blocks[30]?.hash, "the served node is asked again");
  });

  test("a node on another branch gets no reads of blocks that both branches have, and no check, although it is faster", async (t) => {
    const { chain, served, other } = await createBranches();
    served.faults.delayMs = SLOWER_MS;
    const service = await serve(t, [served, other]);
    // Whether it has the finalized block would be checked before each read.
    const checks = () => other.requests.filter(({ body }) => body.includes('"0x21"')).length;
    const before = checks();
    for (let block = 1; block <= 3; block++) {
      const { body } = await rpc(service.url, "eth_getStorageAt", [ADDRESS, "0x0", `0x${block}`]);
      assert.equal(body.result, chain.blocks[block]?.hash);
    }
    assert.deepEqual([other.count("eth_getStorageAt"), checks() - before], [0, 0]);
  });

  test("a node with a machine that lacks the announced block yet is asked again", async (t) => {
    let refusals = 2;
    const node = await createFakeNode({
      chain: createFakeChain({ height: HEIGHT }),
      handlers: {
        eth_getBlockTransactionCountByHash: () => "0x0",
        eth_getStorageAt: () => {
          if (refusals-- > 0) {
            throw new FakeError(-32_000, "header not found");
          }
          return HASH;
        },
      },
    });
    const service = await serve(t, [node], { state: { follow: false } });
    const { body } = await rpc(service.url, "eth_getStorageAt", [ADDRESS, "0x0", REORGANISED]);
    assert.deepEqual([body.error, body.result], [undefined, HASH]);
  });

  test("a node without EIP-1898 is asked once whether it has it", async (t) => {
    const node = await createFakeNode({
      chain: createFakeChain({ height: HEIGHT }),
      handlers: { eth_getBlockTransactionCountByHash: () => "0x0" },
    });
    node.faults.refusesBlockHash = true;
    const service = await serve(t, [node], { state: { follow: false } });
    for (const slot of ["0x1", "0x2", "0x3"]) {
      const { body } = await rpc(service.url, "eth_getStorageAt", [ADDRESS, slot, REORGANISED]);
      assert.equal(body.result, node.chain.blocks[HEIGHT - 1]?.hash);
    }
    assert.equal(node.count("eth_getStorageAt"), 3);
    assert.equal(node.count("eth_getBalance"), 1);
  });

  test("the served head is never null, and an error if no machine has it yet", async (t) => {
    const chain = createFakeChain({ height: HEIGHT });
    const missing = new Set<unknown>();
    const node = await createFakeNode({
      chain,
      handlers: {
        eth_getBlockByHash: ([hash]) =>
          missing.has(hash) ? null : (chain.blocks.find((b) => b.hash === hash)?.json ?? null),
        eth_getBlockByNumber: ([tag]) => (missing.has(tag) ? null : blockAt(chain, tag, chain.latest)),
        eth_getBlockTransactionCountByHash: () => "0x0",
      },
    });
    const service = await serve(t, [node]);
    missing.add(chain.latest.hash).add(`0x${HEIGHT.toString(16)}`);
    const { body } = await rpc(service.url, "eth_getBlockByNumber", ["latest", true]);
    assert.deepEqual([body.result, body.error], [undefined, { code: -32_000, message: "header not found" }]);
    missing.clear();
    assert.notEqual((await rpc(service.url, "eth_getBlockByNumber", ["latest", true])).body.result, null);
  });
});
