import assert from "node:assert/strict";
import { after, describe, type TestContext, test } from "node:test";
import { type Anvil, startAnvil } from "../devnet/anvil.ts";
import { type Asked, ask, askAll, isHit } from "../support/clients/askAll.ts";
import { settled } from "../support/clients/settled.ts";
import { until } from "../support/clients/until.ts";
import { startLyingNode } from "../support/fakes/lyingNode.ts";
import { startRedis, untilRedisIsUsed } from "../support/servers/redis.ts";
import type { ChainCall } from "../support/servers/sealedChain.ts";
import { createService, type Service } from "../support/servers/service.ts";

const BLOCKS = 100;
/** anvil finalizes twice as many blocks below its head. They are read in one step. */
const EPOCH_SLOTS = 20;
const GENESIS_SECONDS = [1_700_000_000, 1_700_000_001];

const live: Anvil[] = [];
after(() => Promise.all(live.map((node) => node.close())));

/** Creates chain 901 with one of two genesis blocks and a number of blocks. */
const startNode = async (genesis: 0 | 1, blocks: number): Promise<Anvil> => {
  const time = String(GENESIS_SECONDS[genesis]);
  const slots = String(EPOCH_SLOTS);
  const args = ["--chain-id", "901", "--no-mining", "--timestamp", time, "--slots-in-an-epoch", slots];
  const node = await startAnvil(args);
  live.push(node);
  await node.call("anvil_mine", `0x${blocks.toString(16)}`);
  return node;
};

const calls: readonly ChainCall[] = [0, 1, 2, 20, 30, 59, 60, 61, 99].flatMap((number) => {
  const at = `0x${number.toString(16)}`;
  return [
    { method: "eth_getBlockByNumber", params: [at, false] },
    { method: "eth_getHeaderByNumber", params: [at] },
    { method: "eth_getBlockByNumber", params: [at, true] },
    { method: "eth_getProof", params: [`0x${"00".repeat(20)}`, [], at] },
  ];
});

const open = async (t: TestContext, node: { readonly url: string }, redis: string): Promise<Service> => {
  const service = await createService({ nodes: [{ url: node.url }], pending: { mode: "node" } }, { cache: { redis } });
  t.after(() => service.close());
  await untilRedisIsUsed(service);
  return service;
};

/** Normalizes the error of an unknown block, because each node has its own text. Above the head, no node is asked. */
const isSame = (ours: Asked | undefined, nodes: Asked): void => {
  if (ours?.result === "null" && /Method not found/.test(nodes.text)) {
    return;
  }
  const error = /BlockOutOfRange/.test(nodes.text)
    ? { code: -32_000, message: "header not found" }
    : JSON.parse(nodes.text).error;
  assert.deepEqual(ours?.result ?? JSON.parse(ours?.text ?? "").error, nodes.result ?? error);
};

/** Asserts that every result equals the node's, also by the hash of a block of the previous chain, which is unknown. */
const assertServes = async (service: Service, node: Anvil, before: readonly Asked[]): Promise<void> => {
  const gone = before.flatMap(({ result }) => {
    const block = JSON.parse(result ?? "null");
    return block?.hash === undefined ? [] : [{ method: "eth_getBlockByHash", params: [block.hash, true] }];
  });
  const all = [...calls, ...gone];
  const ours = await askAll(service.url, all);
  const truth = await askAll(node.url, all);
  for (const [index, nodes] of truth.entries()) {
    isSame(ours[index], nodes);
  }
};

test("the chain restarted from genesis while forebay was down, on the same Redis", async (t) => {
  const { url } = await startRedis(t);
  const first = await startNode(0, BLOCKS);
  const before = await open(t, first, url);
  await settled(before);
  const answers = await askAll(before.url, calls);
  const other = await open(t, first, url);
  await settled(other);
  assert.ok(isHit(await ask(other.url, { method: "eth_getBlockByNumber", params: ["0x14", true] }), "redis"));
  await Promise.all([before.close(), other.close()]);
  await first.close();

  const second = await startNode(1, BLOCKS);
  const after = await open(t, second, url);
  await settled(after);
  await assertServes(after, second, answers);
});

// Most of their time they wait for polls.
describe("forebay is up", { concurrency: true }, () => {
  const former = startNode(0, BLOCKS);
  for (const [what, blocks] of [
    ["lower", 80],
    ["as high", BLOCKS],
    ["a little higher", BLOCKS + 60],
    ["far higher", BLOCKS + 1_100],
  ] as const) {
    test(`the chain restarted from genesis while forebay was up and is ${what}`, async (t) => {
      const { url } = await startRedis(t);
      const first = await former;
      const address = await startLyingNode(t, first.url);
      const service = await open(t, address, url);
      await settled(service);
      const answers = await askAll(service.url, calls);
      const second = await startNode(1, blocks);
      address.target = second.url;
      const latest = { method: "eth_getBlockByNumber", params: ["latest", false] };
      const { result: head } = await ask(second.url, latest);
      await until(async () => (await ask(service.url, latest)).result === head, "the new head is served");
      await assertServes(service, second, answers);
    });
  }
});
