import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type RpcAnswer, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode, type FakeNode } from "../support/fakes/fakeNode.ts";
import { followHead } from "../support/servers/followHead.ts";
import { createService, type Service } from "../support/servers/service.ts";

const hash = (byte: string) => `0x${byte.repeat(32)}`;
const quantity = (value: number | bigint) => `0x${value.toString(16)}`;

const chain = createFakeChain({ height: 20 });
const head = Number(chain.latest.number);
const block = (tag: unknown) => {
  if (tag === "pending") {
    return { ...chain.latest.json, number: quantity(head + 1), parentHash: chain.latest.hash, hash: null };
  }
  const depths: Record<string, number> = { latest: 0, safe: 2, finalized: 4 };
  const depth = depths[String(tag)];
  return chain.blocks[depth === undefined ? Number(tag) : head - depth]?.json ?? null;
};
const log = (number: number, blockHash: string, byte: string) => ({
  address: `0x${"aa".repeat(20)}`,
  topics: [],
  data: "0x",
  blockNumber: quantity(number),
  blockHash,
  blockTimestamp: "0x1",
  transactionHash: hash(byte),
  transactionIndex: "0x0",
  logIndex: "0x0",
  removed: false,
});
const SEALED = log(head, chain.latest.hash, "01");
const PENDING = log(head + 1, hash("bb"), "02");
const TRANSACTION = { hash: hash("01"), blockHash: chain.latest.hash, blockNumber: quantity(head) };

const logsOf = ([filter]: readonly unknown[]) => {
  const { fromBlock, toBlock } = filter as { readonly fromBlock: string; readonly toBlock: string };
  if (fromBlock === "pending") {
    return [PENDING];
  }
  return Number(fromBlock) <= head && head <= Number(toBlock) ? [SEALED] : [];
};

let node: FakeNode;
let service: Service;

/** Starts a node that builds its own pending block. */
before(async () => {
  node = await createFakeNode({
    chain,
    handlers: {
      eth_getBlockByNumber: ([tag]) => block(tag),
      eth_getLogs: logsOf,
      eth_getTransactionByBlockNumberAndIndex: ([tag]) => (tag === "pending" ? null : TRANSACTION),
      eth_getTransactionCount: ([, tag]) => (tag === "pending" ? "0x9" : "0x5"),
      eth_simulateV1: () => [],
      eth_feeHistory: () => ({ oldestBlock: quantity(head + 1), baseFeePerGas: [], gasUsedRatio: [] }),
    },
  });
  service = await createService({ nodes: [{ url: node.url }], pending: { mode: "node" }, forks: "prague" });
  const modeOf = async () => (await ask("eth_getBlockByNumber", "pending", false)).headers.get("x-forebay-pending");
  await until(async () => (await modeOf()) === "node", "the node's pending block is known");
});
after(async () => {
  await service?.close();
  await node?.close();
});

const ask = (method: string, ...params: readonly unknown[]): Promise<RpcAnswer> => rpc(service.url, method, params);

const RANGES = [
  [{ fromBlock: "pending" }, [PENDING]],
  [{ fromBlock: "pending", toBlock: "pending" }, [PENDING]],
  [{ fromBlock: "pending", toBlock: "latest" }, []],
  [{ fromBlock: "pending", toBlock: "0x1" }, []],
  [{ fromBlock: "latest", toBlock: "pending" }, [SEALED, PENDING]],
  [{ fromBlock: quantity(head), toBlock: "pending" }, [SEALED, PENDING]],
] as const;

for (const [filter, expected] of RANGES) {
  test(`logs of ${JSON.stringify(filter)} if the node has a pending block`, async () => {
    const { body, headers, text } = await ask("eth_getLogs", filter);
    assert.deepEqual(body.result, expected, text);
    assert.equal(headers.get("x-forebay-pending"), "node");
  });
}

for (const filter of [
  { fromBlock: quantity(head + 1) },
  { fromBlock: quantity(head + 1), toBlock: "pending" },
  { toBlock: quantity(head + 1) },
  { fromBlock: "pending", toBlock: quantity(head + 1) },
  { fromBlock: quantity(head), toBlock: quantity(head + 1) },
]) {
  test(`logs of ${JSON.stringify(filter)} are an error, because only the node has that block`, async () => {
    assert.deepEqual((await ask("eth_getLogs", filter)).body.error, {
      code: -32602,
      message: `block range extends beyond current head block: requested ${head + 1}, head ${head}`,
    });
  });
}

test("a number above the head is an error until a node has that block, so that an indexer misses no log", async (t) => {
  const growing = createFakeChain({ height: 20 });
  const growingNode = await createFakeNode({
    chain: growing,
    handlers: {
      eth_getLogs: ([filter]) => {
        const { fromBlock, toBlock } = filter as { readonly fromBlock: string; readonly toBlock: string };
        return growing.blocks
          .filter(({ number }) => number >= Number(fromBlock) && number <= Number(toBlock))
          .map(({ number, hash: blockHash }) => log(Number(number), blockHash, "01"));
      },
    },
  });
  t.after(() => growingNode.close());
  for (const mode of ["node", "native", "auto"] as const) {
    const indexer = await createService({ nodes: [{ url: growingNode.url }], pending: { mode }, forks: "none" });
    t.after(() => indexer.close());
    const next = Number(growing.latest.number) + 1;
    const page = async () => (await rpc(indexer.url, "eth_getLogs", [{ fromBlock: quantity(next) }])).body;
    assert.equal((await page()).error?.code, -32602, mode);
    growing.mine();
    assert.deepEqual((await page()).result, [log(next, growing.latest.hash, "01")], mode);
  }
});

test("logs of a node whose pending block is far above the served head leave out no block between them", async (t) => {
  const growing = createFakeChain({ height: 20 });
  let sealed = growing.latest;
  const newest = (): number => Number(growing.latest.number);
  const growingNode = await createFakeNode({
    chain: growing,
    handlers: {
      // The node has mined, and still answers with its old head, as behind a slow load balancer.
      eth_getBlockByNumber: ([tag]) => {
        if (tag === "pending") {
          return {
            ...growing.latest.json,
            number: quantity(newest() + 1),
            parentHash: growing.latest.hash,
            hash: null,
          };
        }
        return tag === "latest" ? sealed.json : (growing.blocks[Number(tag)] ?? sealed).json;
      },
      eth_getLogs: ([filter]) => {
        const { fromBlock, toBlock } = filter as { readonly fromBlock: string; readonly toBlock: string };
        return fromBlock === "pending"
          ? [log(newest() + 1, hash("bb"), "02")]
          : growing.blocks
              .filter(({ number }) => number >= Number(fromBlock) && number <= Number(toBlock))
              .map(({ number, hash: blockHash }) => log(Number(number), blockHash, "01"));
      },
    },
  });
  t.after(() => growingNode.close());
  const indexer = await createService({ nodes: [{ url: growingNode.url }], pending: { mode: "node" }, forks: "none" });
  t.after(() => indexer.close());
  const read = () => rpc(indexer.url, "eth_getLogs", [{ fromBlock: quantity(sealed.number), toBlock: "pending" }]);
  const numbersOf = ({ body }: RpcAnswer) =>
    (body.result as readonly { blockNumber: string }[]).map(({ blockNumber }) => Number(blockNumber));
  await until(async () => (await read()).headers.get("x-forebay-pending") === "node", "the pending block is known");
  const first = Number(sealed.number);
  assert.deepEqual(numbersOf(await read()), [first, first + 1]);
  growing.mine(3);
  assert.match((await read()).body.error?.message ?? "", /does not continue the served head/);
  sealed = growing.latest;
  await until(async () => {
    const numbers = numbersOf(
      await rpc(indexer.url, "eth_getLogs", [{ fromBlock: quantity(first), toBlock: "pending" }]),
    );
    return numbers.length >= 4 && numbers.every((number, index) => number === first + index);
  }, "the head follows, and no block is left out");
});

test("pending logs are returned, although the head moves while the first headers after a start are read", async (t) => {
  const growing = createFakeChain({ height: 200 });
  const from = Number(growing.latest.number) - 150;
  const asked = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  t.after(() => released.resolve());
  const newest = (): number => Number(growing.latest.number);
  const growingNode = await createFakeNode({
    chain: growing,
    handlers: {
      eth_getBlockByNumber: async ([tag]) => {
        if (tag === "pending") {
          const { json, hash: parentHash } = growing.latest;
          return { ...json, number: quantity(newest() + 1), parentHash, hash: null };
        }
        if (Number(tag) === from) {
          asked.resolve();
          await released.promise;
        }
        return (tag === "latest" ? growing.latest : growing.blocks[Number(tag)])?.json ?? null;
      },
      eth_getLogs: ([filter]) =>
        (filter as { readonly fromBlock: string }).fromBlock === "pending" ? [log(newest() + 1, hash("bb"), "02")] : [],
    },
  });
  t.after(() => growingNode.close());
  const indexer = await createService({ nodes: [{ url: growingNode.url }], pending: { mode: "node" }, forks: "none" });
  t.after(() => indexer.close());
  const modeOf = async () =>
    (await rpc(indexer.url, "eth_getBlockByNumber", ["pending", false])).headers.get("x-forebay-pending");
  await until(async () => (await modeOf()) === "node", "the node's pending block is known");
  const answer = rpc(indexer.url, "eth_getLogs", [{ fromBlock: quantity(from), toBlock: "pending" }]);
  await asked.promise;
  growing.mine();
  await followHead(indexer, { head: growing.latest });
  released.resolve();
  const { body, headers, text } = await answer;
  assert.deepEqual(body.result, [log(newest() + 1, hash("bb"), "02")], text);
  assert.equal(headers.get("x-forebay-pending"), "node");
});

test("a transaction index outside the node's pending block is not answered from the sealed block", async () => {
  const { body, headers } = await ask("eth_getTransactionByBlockNumberAndIndex", "pending", "0x0");
  assert.equal(body.result, null);
  assert.equal(headers.get("x-forebay-pending"), "node");
});

test("a node's response at pending has the mode header", async () => {
  const simulated = await ask("eth_simulateV1", { blockStateCalls: [{}] }, "pending");
  assert.equal(simulated.headers.get("cache-status"), `forebay; fwd=bypass; detail="its state is the node's"`);
  assert.equal(simulated.headers.get("x-forebay-pending"), "node");
  const fees = await ask("eth_feeHistory", "0x1", "pending", []);
  assert.equal(fees.headers.get("x-forebay-pending"), "node");
});
