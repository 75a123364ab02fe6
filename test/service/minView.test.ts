import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { type TestContext, test } from "node:test";
import { createDevnet } from "../devnet/devnet.ts";
import { devAccounts } from "../devnet/traffic.ts";
import { wireMessage } from "../support/builders/flashblocks.ts";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeFeed } from "../support/fakes/fakeFeed.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { createFeedService } from "../support/servers/feedService.ts";
import { followHead } from "../support/servers/followHead.ts";
import { startRedis } from "../support/servers/redis.ts";
import { createService } from "../support/servers/service.ts";
import { ActorSigner, ANVIL_KEYS } from "../support/state/actor.ts";

/** Long, so that no read is late on a busy machine. The test refreshes the heads itself. */
const LONG_MS = 20_000;
const KEY = "a-key-of-a-careful-client";
const VIEW = "x-forebay-view";
const NUMBER = ["eth_blockNumber"] as const;

const viewOf = async (url: string) => (await rpc(url, ...NUMBER)).headers.get(VIEW);
const askFor = (url: string, view: string) => rpc(url, ...NUMBER, [], { "x-forebay-min-view": view });
const dataOf = ({ body }: Awaited<ReturnType<typeof rpc>>) => Reflect.get(body.error ?? {}, "data");

/** Two replicas that execute nothing, with one Redis in front of one node. The messages of one feed reach the second replica when the test passes them on. */
const startReplicas = async (t: TestContext, minViewWaitMs: number) => {
  const chain = createFakeChain({ height: 100, startSeconds: Math.floor(Date.now() / 1_000) - 200 });
  const node = await createFakeNode({ chain });
  const redis = await startRedis(t);
  const feeds = [await createFakeFeed(), await createFakeFeed()] as const;
  const start = async (feed: (typeof feeds)[number]) => {
    const connected = feed.connected();
    const service = await createService(
      {
        nodes: [{ url: node.url }],
        pending: { mode: "feed", feeds: [feed.url] },
        ...{ blockTimeMs: LONG_MS, forks: "none" },
      },
      { server: { minViewWaitMs }, cache: { redis: redis.url } },
    );
    await connected;
    return service;
  };
  const replicas = [await start(feeds[0]), await start(feeds[1])] as const;
  t.after(async () => {
    await Promise.all([...replicas, ...feeds].map((part) => part.close()));
    await node.close();
  });
  const { number, hash, timestamp } = chain.latest;
  const messageOf = (index: number) =>
    wireMessage(index, { number: number + 1n, parentHash: hash, timestamp: timestamp + 12n });
  return { replicas, feeds, messageOf, chain };
};

test("a replica that is behind waits for the flashblock that a client has seen elsewhere", async (t) => {
  const { replicas, feeds, messageOf } = await startReplicas(t, LONG_MS);
  const [first, second] = replicas;
  assert.equal(await viewOf(first.url), "101-0");
  for (const feed of feeds) {
    feed.send(messageOf(0));
  }
  await until(async () => (await viewOf(second.url)) === "101-1-sealed", "both have the first flashblock");
  feeds[0].send(messageOf(1));
  await until(async () => (await viewOf(first.url)) === "101-2-sealed", "the first replica has the second flashblock");
  const late = askFor(second.url, "101-2-sealed");
  // The replica waits: another client is answered from the older view.
  assert.equal(await viewOf(second.url), "101-1-sealed");
  feeds[1].send(messageOf(1));
  assert.equal((await late).headers.get(VIEW), "101-2-sealed");
  assert.equal((await late).body.error, undefined);
  assert.equal((await askFor(second.url, "101-1-sealed")).headers.get(VIEW), "101-2-sealed");
  assert.equal(await metric(second.opsUrl, "forebay_min_view_requests_total", 'outcome="behind"'), 0);
  assert.equal(await metric(second.opsUrl, "forebay_min_view_requests_total"), 2);
});

test("a replica whose flashblocks are ahead of its head does not replace one with that head", async (t) => {
  const { replicas, feeds, messageOf, chain } = await startReplicas(t, 1);
  const [{ url }] = replicas;
  feeds[0].send(messageOf(0));
  await until(async () => (await viewOf(url)) === "101-1-sealed", "the view has the flashblock");
  const { body } = await rpc(url, "eth_getBlockByNumber", ["pending", false]);
  const { number, timestamp } = chain.latest;
  const parentHash = Reflect.get(Object(body.result), "hash") as `0x${string}`;
  const next = { number: number + 2n, parentHash, timestamp: timestamp + 24n };
  // It names the message before it, so that this block is complete.
  const metadata = { block_number: Number(next.number), prev_flashblock_id: `${number + 1n}-0` };
  feeds[0].send(wireMessage(0, { ...next, metadata }));
  await until(async () => (await viewOf(url)) === "102-1-100-sealed", "the view has a flashblock of the block above");
  assert.deepEqual(dataOf(await askFor(url, "102-0")), { view: "102-1-100-sealed" });
  assert.equal((await askFor(url, "102-1-100-sealed")).body.error, undefined);
  assert.equal((await askFor(url, "102-1-x")).status, 400);
});

test("a replica that stays behind returns its own view, to each call of a batch", async (t) => {
  const { replicas, feeds, messageOf } = await startReplicas(t, 1);
  const [, { url, opsUrl }] = replicas;
  feeds[1].send(messageOf(0));
  await until(async () => (await viewOf(url)) === "101-1-sealed", "the view has the flashblock");
  const answer = await askFor(url, "101-2-sealed");
  assert.equal(answer.body.error?.code, -32_000);
  assert.deepEqual(dataOf(answer), { view: "101-1-sealed" });
  const batch = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", "x-forebay-min-view": "102-0" },
    body: JSON.stringify([7, 8].map((id) => ({ jsonrpc: "2.0", id, method: "eth_chainId", params: [] }))),
  });
  const items = (await batch.json()) as { readonly id: number; readonly error: { readonly code: number } }[];
  assert.deepEqual(
    items.map(({ id, error }) => [id, error.code]),
    [
      [7, -32_000],
      [8, -32_000],
    ],
  );
  assert.equal((await askFor(url, "latest")).status, 400);
  assert.ok((await metric(opsUrl, "forebay_min_view_requests_total", 'outcome="behind"')) >= 2);
});

test("a client with confirmations gets no older view either, also after a start", async (t) => {
  const sha256 = createHash("sha256").update(KEY).digest("hex");
  const node = await createFakeNode({ chain: createFakeChain({ height: 100 }) });
  const service = await createService(
    { nodes: [{ url: node.url }], blockTimeMs: LONG_MS },
    { server: { minViewWaitMs: 1 }, access: { keys: [{ name: "careful", sha256, confirmations: 60 }] } },
  );
  t.after(async () => {
    await service.close();
    await node.close();
  });
  for (const time of ["at the start", "later"]) {
    const headers = { "x-api-key": KEY, "x-forebay-min-view": "500-0" };
    const answer = await rpc(service.url, ...NUMBER, [], headers);
    assert.deepEqual(dataOf(answer), { view: "41-0" }, time);
  }
});

test("after a reorganisation to a lower block, the error comes at once", async (t) => {
  const chain = createFakeChain({ height: 100 });
  const node = await createFakeNode({ chain });
  const service = await createService(
    { nodes: [{ url: node.url }], blockTimeMs: LONG_MS },
    { server: { minViewWaitMs: LONG_MS } },
  );
  t.after(async () => {
    await service.close();
    await node.close();
  });
  const follow = () => followHead(service, { head: chain.latest });
  assert.equal(await viewOf(service.url), "101-0");
  chain.reorg(4, 2);
  await follow();
  assert.equal(await viewOf(service.url), "99-0");
  assert.deepEqual(dataOf(await askFor(service.url, "101-0")), { view: "99-0", reorged: true });
  // The new branch is as high as the replaced one.
  chain.mine(2);
  await follow();
  assert.equal((await askFor(service.url, "101-0")).headers.get(VIEW), "101-0");
});

test("a replica that has not verified the flashblocks does not answer from older state than the client has seen", async (t) => {
  const devnet = await createDevnet({ manual: true, generation: "e" });
  const verifying = await createFeedService(devnet);
  const other = await createService(
    { nodes: [{ url: devnet.url }], pending: { mode: "feed", feeds: [devnet.feedUrl ?? ""] }, forks: "none" },
    { server: { minViewWaitMs: 1 } },
  );
  t.after(async () => {
    await Promise.all([verifying.close(), other.close()]);
    await devnet.close();
  });
  await devnet.step();
  const from = devAccounts[0]?.address;
  await new ActorSigner(devnet.chainId, ANVIL_KEYS)
    .sign({ kind: "call", from: 0, to: "0x00000000000000000000000000000000000000cc", value: 7n })
    .then((raw) => rpc(devnet.url, "eth_sendRawTransaction", [raw]));
  const before = (await rpc(verifying.url, "eth_getTransactionCount", [from, "latest"])).body.result;
  await devnet.step();
  const seen = async () => rpc(verifying.url, "eth_getTransactionCount", [from, "pending"]);
  await until(async () => (await seen()).body.result !== before, "the transaction is pre-confirmed");
  const view = (await seen()).headers.get(VIEW) ?? "";
  assert.match(view, /^\d+-\d+$/);
  await until(async () => (await viewOf(other.url)) === `${view}-sealed`, "the other replica has the flashblock");
  const ask = () => rpc(other.url, "eth_getTransactionCount", [from, "pending"], { "x-forebay-min-view": view });
  const early = await ask();
  assert.equal(early.body.error?.code, -32_000, JSON.stringify(early.body));
  assert.deepEqual(dataOf(early), { view: `${view}-sealed` });
  await devnet.sealNow();
  await until(async () => (await ask()).body.result === (await seen()).body.result, "the block is sealed");
});
