import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { askAll, isHit } from "../support/clients/askAll.ts";
import { settled } from "../support/clients/settled.ts";
import { until } from "../support/clients/until.ts";
import { type LyingNode, startLyingNode } from "../support/fakes/lyingNode.ts";
import {
  type ChainCall,
  cacheableCallsOf,
  createSealedChain,
  type SealedChain,
} from "../support/servers/sealedChain.ts";
import { createService, type Service } from "../support/servers/service.ts";

const REQUESTS = 1_000;
const MIN_METHODS = 25;

let chain: SealedChain;
let proxy: LyingNode;
let service: Service;
let calls: readonly ChainCall[];

before(async () => {
  chain = await createSealedChain();
  proxy = await startLyingNode({ after: () => undefined }, chain.devnet.anvilUrl);
  service = await createService({ nodes: [{ url: proxy.url }], pending: { mode: "node" } });
  await settled(service);
  calls = cacheableCallsOf(chain, REQUESTS);
});
after(async () => {
  await service?.close();
  await proxy?.close();
  await chain?.devnet.close();
});

/** Requests that follow the head. They do not depend on the calls of clients. */
const FOLLOWING = ["eth_getBlockByNumber"];

const reads = (): number =>
  proxy.calls.entries().reduce((sum, [method, count]) => sum + (FOLLOWING.includes(method) ? 0 : count), 0);

test("a thousand repeated mixed requests are served from the cache with the node's own bytes", async () => {
  assert.ok(calls.length >= REQUESTS, `${calls.length} requests`);
  const methods = new Set(calls.map(({ method }) => method));
  assert.ok(methods.size >= MIN_METHODS, `${methods.size} methods`);

  const first = await askAll(service.url, calls);
  const asked = reads();
  const second = await askAll(service.url, calls);
  assert.deepEqual(
    second.filter((answer) => !isHit(answer)),
    [],
  );
  assert.equal(reads(), asked);
  const truth = await askAll(chain.devnet.anvilUrl, calls);
  for (const [index, { call, result }] of truth.entries()) {
    assert.ok(result !== undefined, JSON.stringify(call));
    assert.equal(first[index]?.result, result, JSON.stringify(call));
    assert.equal(second[index]?.result, result, JSON.stringify(call));
  }
});

test("a new head's block and receipts are fetched once and serve all clients", async () => {
  const askers = [
    { method: "eth_getBlockByNumber", params: ["latest", false] },
    { method: "eth_getBlockReceipts", params: ["latest"] },
  ];
  const before = await askAll(service.url, askers);
  await chain.devnet.sealNow();
  const asked = new Map(proxy.calls);
  await until(
    async () => (await askAll(service.url, askers))[0]?.result !== before[0]?.result,
    "the new head is served",
  );
  const many = await askAll(service.url, Array.from({ length: 50 }, () => askers).flat());
  const truth = await askAll(chain.devnet.anvilUrl, askers);
  for (const [index, { result }] of many.entries()) {
    assert.equal(result, truth[index % askers.length]?.result);
  }
  // A poll has returned the block.
  for (const [method, calls] of [
    ["eth_getBlockByHash", 0],
    ["eth_getBlockReceipts", 1],
  ] as const) {
    assert.equal((proxy.calls.get(method) ?? 0) - (asked.get(method) ?? 0), calls, method);
  }
});
