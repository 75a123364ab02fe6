import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { rpc } from "../support/clients/rpc.ts";
import { settled } from "../support/clients/settled.ts";
import { createFakeChain, type FakeBlock } from "../support/fakes/fakeChain.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { FakeError } from "../support/fakes/front.ts";
import { createService } from "../support/servers/service.ts";

const HEIGHT = 20;
const FINAL = 10;
const PAYLOAD = { blockStateCalls: [{ calls: [{ value: "0x01" }] }] };

/** The node's result. It names the block that it simulated on. */
const resultOn = ({ hash }: FakeBlock) => [{ parentHash: hash, calls: [] }];

/** Starts a forebay that does not know the chain's rules, and whose node reports an old head. */
const start = async (t: TestContext, refusesBlockHash: boolean) => {
  const chain = createFakeChain({ height: HEIGHT });
  const { latest } = chain;
  let isBehind = true;
  const payloads: unknown[] = [];
  const blockOf = (parameter: unknown, head: FakeBlock | undefined): FakeBlock | undefined => {
    const final = chain.blocks[FINAL];
    const tags: Record<string, FakeBlock | undefined> = { latest: head, safe: final, finalized: final };
    return tags[String(parameter)] ?? chain.blocks[Number(parameter)];
  };
  const simulate = ([payload, parameter]: readonly unknown[]) => {
    payloads.push(payload);
    const isByHash = typeof parameter === "object" && parameter !== null && "blockHash" in parameter;
    if (isByHash && refusesBlockHash) {
      throw new FakeError(-32_602, "invalid argument 1: json: cannot unmarshal object into Go value of type string");
    }
    const found = isByHash
      ? chain.blocks.find(({ hash }) => hash === parameter.blockHash)
      : blockOf(parameter ?? "latest", chain.latest);
    if (found === undefined) {
      throw new FakeError(-32_000, "header not found");
    }
    return resultOn(found);
  };
  const node = await createFakeNode({
    chain,
    handlers: {
      eth_getBlockByNumber: ([tag]) => blockOf(tag, isBehind ? latest : chain.latest)?.json ?? null,
      eth_getBlockTransactionCountByHash: () => "0x0",
      eth_simulateV1: simulate,
    },
  });
  node.faults.refusesBlockHash = refusesBlockHash;
  const service = await createService({ nodes: [{ url: node.url }], blockTimeMs: 10_000, pending: { mode: "node" } });
  t.after(async () => {
    await service.close();
    await node.close();
  });
  await settled(service);
  const ask = (...block: readonly unknown[]) => rpc(service.url, "eth_simulateV1", [PAYLOAD, ...block]);
  const follow = () => {
    isBehind = false;
  };
  return { ask, chain, payloads, follow };
};

for (const refusesBlockHash of [false, true]) {
  const kind = refusesBlockHash ? "without EIP-1898" : "with EIP-1898";
  test(`a simulation by a node ${kind} is of the view's block, also if the node is ahead`, async (t) => {
    const { ask, chain, payloads } = await start(t, refusesBlockHash);
    const { latest } = chain;
    chain.mine();
    for (const block of [[], ["latest"], ["unsafe"], [latest.json.number], [{ blockNumber: latest.json.number }]]) {
      const { body, headers } = await ask(...block);
      assert.deepEqual(body.result, resultOn(latest), JSON.stringify(block));
      assert.match(headers.get("cache-status") ?? "", /fwd=bypass; detail="not executed here"/);
    }
    assert.deepEqual((await ask("finalized")).body.result, resultOn(chain.blocks[FINAL] ?? latest));
    assert.ok(payloads.every((payload) => JSON.stringify(payload) === JSON.stringify(PAYLOAD)));
    const { error } = (await ask(chain.latest.json.number)).body;
    assert.deepEqual([error?.code, error?.message], [-32_000, "header not found"]);
  });

  test(`a simulation by a node ${kind} on another branch is an error until the heads follow it`, async (t) => {
    const { ask, chain, follow } = await start(t, refusesBlockHash);
    chain.reorg(3, 3);
    const { error, result } = (await ask("latest")).body;
    assert.deepEqual([error?.code, result], [-32_000, undefined]);
    assert.match(error?.message ?? "", /header not found/);
    follow();
    assert.deepEqual((await ask("latest")).body.result, resultOn(chain.latest));
  });
}
