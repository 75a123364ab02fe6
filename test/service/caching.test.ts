import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type CountingProxy, createCountingProxy } from "../support/countingProxy.ts";
import { metric, resultText, rpc } from "../support/rpc.ts";
import { type ChainCall, createSealedChain, questionsOf, type SealedChain } from "../support/sealedChain.ts";
import { createService, type Service } from "../support/service.ts";
import { until } from "../support/until.ts";

const REQUESTS = 1_000;
const MIN_METHODS = 25;
const AT_ONCE = 16;

let chain: SealedChain;
let proxy: CountingProxy;
let service: Service;
let calls: readonly ChainCall[];

before(async () => {
  chain = await createSealedChain();
  proxy = await createCountingProxy(chain.devnet.anvilUrl);
  service = await createService({ nodes: [{ url: proxy.url }], pending: { mode: "node" } });
  // Until a node has said what is final, an answer by the tag is not kept.
  await until(
    async () => (await metric(service.opsUrl, "forebay_head{", 'tag="safe"')) > 0,
    "the finalized head is known",
  );
  // Recent logs are kept where the ring reaches, which is filled in the background.
  await until(async () => {
    const { headers } = await rpc(service.url, "eth_getLogs", [{ fromBlock: "0x5e", toBlock: "0x7e" }]);
    return headers.get("cache-status")?.startsWith("forebay; hit") === true;
  }, "the ring is filled");
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

const askAll = async (check: (call: ChainCall, text: string, cacheStatus: string) => void): Promise<void> => {
  const waiting = calls.values();
  const worker = async () => {
    for (const call of waiting) {
      const { text, headers } = await rpc(service.url, call.method, call.params);
      check(call, text, headers.get("cache-status") ?? "");
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
};

test("a thousand mixed requests twice: the second time no node is asked, and all answers are the node's own bytes", async () => {
  assert.ok(calls.length >= REQUESTS, `${calls.length} requests`);
  const methods = new Set(calls.map(({ method }) => method));
  assert.ok(methods.size >= MIN_METHODS, `${methods.size} methods`);

  const first = new Map<ChainCall, string>();
  await askAll((call, text) => first.set(call, resultText(text)));
  const asked = reads();
  const misses: string[] = [];
  await askAll((call, text, status) => {
    if (!status.startsWith("forebay; hit")) misses.push(`${status}: ${JSON.stringify(call)}`);
    assert.equal(resultText(text), first.get(call));
  });
  assert.deepEqual(misses, []);
  assert.equal(reads(), asked);

  for (const call of calls) {
    const { text } = await rpc(chain.devnet.anvilUrl, call.method, call.params);
    assert.equal(first.get(call), resultText(text), JSON.stringify(call));
  }
});
