import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Context } from "../../src/core/context.ts";
import type { RpcRequest, RpcResponse } from "../../src/core/rpcSource.ts";
import { Upstreams } from "../../src/heads/upstreams.ts";
import { createCall } from "../../src/jsonrpc/call.ts";
import { createContext, createRequest } from "../support/builders/request.ts";
import { silent } from "../support/builders/silent.ts";
import { createFakeChain, type FakeBlock } from "../support/fakes/fakeChain.ts";
import { createFakeNode, type FakeNodeOptions } from "../support/fakes/fakeNode.ts";

const ADDRESS = `0x${"11".repeat(20)}`;
const HASH = `0x${"ab".repeat(32)}`;
const bodyText = ({ body }: RpcResponse): string =>
  body instanceof Uint8Array ? Buffer.from(body).toString() : "stream";

/** Starts two nodes: `served` on the served branch, and `other` on a lower branch, which is faster and thus preferred. */
const start = async (t: TestContext, served: FakeNodeOptions["handlers"], other: FakeNodeOptions["handlers"]) => {
  const chain = createFakeChain({ height: 20 });
  const left = createFakeChain({ height: 20 });
  left.reorg(3, 2);
  const nodes = await Promise.all([
    createFakeNode({ chain: left, ...(other && { handlers: other }) }),
    createFakeNode({ chain, ...(served && { handlers: served }) }),
  ]);
  const upstreams = new Upstreams(
    // Agreement would wait 2 s for the origin of the lower branch.
    {
      chain: "test",
      agree: 1,
      // No poll notices a reorganisation during a test.
      blockTimeMs: 600_000,
      nodes: nodes.map(({ url }, index) => ({ url, name: index === 0 ? "other" : "served" })),
    },
    silent(),
  );
  t.after(async () => {
    await upstreams.close();
    await Promise.all(nodes.map((node) => node.close()));
  });
  await upstreams.ready;
  // A refresh ends after 500 ms, which a node on a loaded machine may exceed.
  while (upstreams.heads.current()?.latest.hash !== chain.latest.hash) {
    await upstreams.heads.next(t.signal);
  }
  return { upstreams, chain, left, nodes };
};

const contextIn = (upstreams: Upstreams): Context => {
  const heads = upstreams.heads.current();
  assert.ok(heads);
  return createContext({ heads });
};

const receipt = (more: Partial<RpcRequest> = {}): RpcRequest =>
  createRequest({
    method: "eth_getTransactionReceipt",
    params: [HASH],
    retention: "byTransaction",
    blockField: "blockHash",
    ...more,
  });

const inBlock = ({ number, hash }: { readonly number: bigint; readonly hash: string }) => ({
  blockHash: hash,
  blockNumber: `0x${number.toString(16)}`,
});

test("a transaction of the other branch is absent, unless it must exist: then that node gets the request too", async (t) => {
  const { upstreams, nodes } = await start(
    t,
    { eth_getTransactionReceipt: () => null },
    { eth_getTransactionReceipt: () => inBlock(createFakeChain({ height: 20 }).latest) },
  );
  const answer = await upstreams.request(receipt(), contextIn(upstreams));
  assert.deepEqual([bodyText(answer), answer.verified], ["null", true]);
  assert.equal(nodes[0].count("eth_getTransactionReceipt"), 0);
  await upstreams.request(receipt({ nullIsError: true }), contextIn(upstreams));
  assert.equal(nodes[0].count("eth_getTransactionReceipt"), 1);
});

test("a null and a read of the head are verified if the node still has the view's block afterwards", async (t) => {
  const handlers = { eth_getTransactionReceipt: () => null, eth_feeHistory: () => ({}) };
  const { upstreams, chain, nodes } = await start(t, handlers, handlers);
  const context = contextIn(upstreams);
  const { number, hash } = chain.latest;
  const fees = createRequest({
    method: "eth_feeHistory",
    params: ["0x1", "0x14", []],
    retention: "head",
    block: { number, hash },
  });
  assert.equal((await upstreams.request(receipt(), context)).verified, true);
  assert.equal((await upstreams.request(fees, context)).verified, true);
  const reads = nodes[1].count("eth_getBlockByNumber");
  await Promise.all(Array.from({ length: 20 }, () => upstreams.request(receipt(), context)));
  assert.ok(nodes[1].count("eth_getBlockByNumber") - reads < 20, "concurrent checks share one read of the block");
  chain.reorg(1, 1);
  assert.equal((await upstreams.request(receipt(), context)).verified, false);
  await assert.rejects(upstreams.request(fees, context), { kind: "otherBranch" });
});

test("a read at a block that a reorganisation removed is not repeated", async (t) => {
  const { upstreams, chain, nodes } = await start(t, {}, {});
  const context = contextIn(upstreams);
  const { number, hash } = chain.latest;
  const params = [ADDRESS, "0x0"] as const;
  const read = createRequest({
    method: "eth_getStorageAt",
    params: [...params, "0x14"],
    retention: "recentState",
    block: { number, hash },
    byHash: createCall("eth_getStorageAt", [...params, { blockHash: hash }]),
  });
  assert.equal((await upstreams.request(read, context)).verified, true);
  const before = nodes[1].count("eth_getStorageAt");
  chain.reorg(1, 1);
  await assert.rejects(upstreams.request(read, context), /of another branch|header not found/);
  assert.equal(nodes[1].count("eth_getStorageAt") - before, 2, "once by hash, once by number");
});

test("a response is rejected if its node joined the view's branch only after sending it", async (t) => {
  const other: FakeNodeOptions["handlers"] = {
    eth_getStorageAt: () => {
      join();
      return "0xbad";
    },
  };
  const { upstreams, chain, left, nodes } = await start(t, { eth_getStorageAt: () => "0x600d" }, other);
  const join = (): void => {
    const own = left.blocks as FakeBlock[];
    own.splice(0, own.length, ...chain.blocks);
  };
  nodes[1].faults.answer = 503;
  nodes[1].faults.methods = ["eth_getStorageAt"];
  const { number, hash } = chain.blocks[19] ?? chain.latest;
  const read = createRequest({
    method: "eth_getStorageAt",
    params: [HASH, "0x0", "0x13"],
    retention: "recentState",
    block: { number, hash },
  });
  await assert.rejects(upstreams.request(read, contextIn(upstreams)), /another branch|503|no answer/i);
  assert.equal(nodes[0].count("eth_getStorageAt"), 0, "it gets no request");
});
