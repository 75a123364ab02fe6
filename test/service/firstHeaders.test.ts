import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { hashHeader } from "../../src/ethereum/blockHeader.ts";
import { formatQuantity } from "../../src/ethereum/hex.ts";
import { parseHeader } from "../../src/verification/checkHeader.ts";
import { rpc } from "../support/clients/rpc.ts";
import type { Lie } from "../support/fakes/lyingNode.ts";
import { createService } from "../support/servers/service.ts";
import { EMITTER } from "../world/chain/emitter.ts";
import { TruthChain } from "../world/chain/truthChain.ts";
import { startWorldNode } from "../world/nodes/worldNode.ts";

/** No block is sealed meanwhile. */
const BLOCK_TIME_MS = 60_000;
const OTHER = `0x${"99".repeat(20)}`;
const OTHER_HASH = `0x${"99".repeat(32)}`;

/** Starts a service whose first node tells lies, and its second one none. Nobody has asked it yet. */
const start = async (t: TestContext, lies: readonly Lie[]) => {
  const chain = await TruthChain.create(1, 1);
  t.after(() => chain.lagBound.close());
  const nodes = await Promise.all([startWorldNode(t, chain), startWorldNode(t, chain)]);
  const [liar] = nodes;
  assert.ok(liar);
  liar.fault = { lies };
  const service = await createService({
    nodes: nodes.map(({ url }, index) => ({ name: `node${index}`, url, priority: index, provider: `origin${index}` })),
    ...{ blockTimeMs: BLOCK_TIME_MS, forks: "prague", pending: { mode: "node" }, state: { follow: false } },
  });
  t.after(() => service.close());
  return { chain, url: service.url };
};

const isLogs = (result: unknown): result is readonly object[] => Array.isArray(result) && result.length > 0;

const WRONG: readonly (readonly [string, (log: object) => object])[] = [
  ["has another address", (log) => ({ ...log, address: OTHER })],
  ["has another topic", (log) => ({ ...log, topics: [`0x${"77".repeat(32)}`] })],
];

for (const [name, result] of WRONG) {
  test(`a log that ${name} is not in the first answer after a start`, async (t) => {
    const lie: Lie = {
      ...{ name, methods: ["eth_getLogs"] },
      result: (logs) => (isLogs(logs) ? logs.map((log) => result(log)) : logs),
    };
    const { chain, url } = await start(t, [lie]);
    const [fromBlock, toBlock] = [chain.head.number - 100, chain.head.number - 60];
    const filter = { fromBlock: formatQuantity(fromBlock), toBlock: formatQuantity(toBlock) };
    const { body } = await rpc(url, "eth_getLogs", [filter]);
    assert.deepEqual(
      body.result,
      chain.blocksBetween(fromBlock, toBlock).flatMap(({ logs }) => logs),
    );
  });
}

/** Returns another block with the same number, whose hash is that of its header. */
const withOtherState = (block: Readonly<Record<string, unknown>>): object => {
  const other = { ...block, stateRoot: OTHER_HASH };
  const hash = hashHeader(parseHeader(other));
  const transactions = (block.transactions as readonly object[]).map((each) => ({ ...each, blockHash: hash }));
  return { ...other, hash, transactions };
};

test("the first block by number after a start is that of the served chain", async (t) => {
  const lie: Lie = {
    ...{ name: "block", methods: ["eth_getBlockByNumber"] },
    result: (block, { params: [tag, isFull] }) => (isFull && tag !== "latest" ? withOtherState(Object(block)) : block),
  };
  const { chain, url } = await start(t, [lie]);
  const number = chain.head.number - 100;
  const { body } = await rpc(url, "eth_getBlockByNumber", [formatQuantity(number), true]);
  assert.equal(Object(body.result).hash, chain.blocksBetween(number, number)[0]?.hash);
});

test("the first block by hash after a start is not missing because one node lacks it", async (t) => {
  const lie: Lie = { name: "lacks", methods: ["eth_getBlockByHash"], result: () => null };
  const { chain, url } = await start(t, [lie]);
  const hash = chain.blocksBetween(chain.head.number - 100, chain.head.number - 100)[0]?.hash;
  const { body } = await rpc(url, "eth_getBlockByHash", [hash, false]);
  assert.equal(Object(body.result).hash, hash);
});

test("the first proof after a start is verified by the header of its block", async (t) => {
  const lie: Lie = {
    ...{ name: "balance", methods: ["eth_getProof"] },
    result: (proof) => ({ ...Object(proof), balance: "0x1" }),
  };
  const { chain, url } = await start(t, [lie]);
  for (const depth of [20, 100]) {
    const block = formatQuantity(chain.head.number - depth);
    const { body, headers } = await rpc(url, "eth_getProof", [EMITTER, ["0x0"], block]);
    assert.equal(Object(body.result).balance, "0x0", `${depth} blocks below the head`);
    assert.match(headers.get("x-forebay-proof") ?? "", /^proven/);
  }
});

test("the first answer that must be proven waits for the headers", async (t) => {
  const { chain, url } = await start(t, []);
  const block = formatQuantity(chain.head.number - 20);
  const { body } = await rpc(url, "eth_getBlockByNumber", [block, false], { "x-forebay-require": "proven" });
  assert.equal(Object(body.result).number, block, JSON.stringify(body));
});
