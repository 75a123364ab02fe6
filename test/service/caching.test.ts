import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { askAll, isHit } from "../support/askAll.ts";
import { type CountingProxy, createCountingProxy } from "../support/countingProxy.ts";
import { type ChainCall, createSealedChain, questionsOf, type SealedChain } from "../support/sealedChain.ts";
import { createService, type Service } from "../support/service.ts";
import { settled } from "../support/settled.ts";

const REQUESTS = 1_000;
const MIN_METHODS = 25;

let chain: SealedChain;
let proxy: CountingProxy;
let service: Service;
let calls: readonly ChainCall[];

before(async () => {
  chain = await createSealedChain();
  proxy = await createCountingProxy(chain.devnet.anvilUrl);
  service = await createService({ nodes: [{ url: proxy.url }], pending: { mode: "node" } });
  await settled(service);
  calls = questionsOf(chain, REQUESTS);
});
after(async () => {
  await service?.close();
  await proxy?.close();
  await chain?.devnet.close();
});

/** Following the head, which goes on whatever is asked. */
const FOLLOWING = ["eth_getBlockByNumber"];

const reads = (): number =>
  proxy.calls.entries().reduce((sum, [method, count]) => sum + (FOLLOWING.includes(method) ? 0 : count), 0);

test("a thousand mixed requests twice: the second time no node is asked, and all answers are the node's own bytes", async () => {
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
