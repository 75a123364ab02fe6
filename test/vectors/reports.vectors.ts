import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { WebSocketServer } from "ws";
import { checkConfig } from "../../src/cli/check.ts";
import { configSchema } from "../../src/config/schema.ts";
import { PendingTransactions } from "../../src/nodes/pendingTransactions.ts";
import { rpc } from "../support/clients/rpc.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { createService } from "../support/servers/service.ts";
import { TruthChain } from "../world/chain/truthChain.ts";
import { startWorldNode } from "../world/nodes/worldNode.ts";
import { readJson } from "./vectorFolder.ts";

/** Inputs of faults that were found, with the right answers. */

interface RangeBeyondHead {
  readonly nodeReplies: readonly { readonly name: string; readonly error: { readonly code: number } }[];
  readonly request: { readonly method: string; readonly params: readonly [{ readonly fromBlock: string }] };
}

const range = readJson("reports/12-range-beyond-head.json") as RangeBeyondHead;
const CHAIN_ID = 1;
/** No block is sealed meanwhile. */
const BLOCK_TIME_MS = 60_000;

/** Starts a service with nodes that answer their first calls of the method with the error: as many as `refusals` says of each. */
const startRefusing = async (t: TestContext, error: object, method: string, refusals: readonly number[]) => {
  const chain = await TruthChain.create(CHAIN_ID, 1);
  t.after(() => chain.lagBound.close());
  const nodes = await Promise.all(refusals.map(() => startWorldNode(t, chain)));
  for (const [index, node] of nodes.entries()) {
    let refused = 0;
    const response = (truth: object, { id }: { readonly id: unknown }) =>
      refused++ < (refusals[index] ?? 0) ? { jsonrpc: "2.0", id, error } : truth;
    node.fault = { lies: [{ name: "not yet", methods: [method], response }] };
  }
  const service = await createService({
    nodes: nodes.map(({ url }, index) => ({ name: `node${index}`, url, priority: index })),
    ...{ blockTimeMs: BLOCK_TIME_MS, pending: { mode: "node" }, state: { follow: false } },
  });
  t.after(() => service.close());
  const ask = async (...params: readonly unknown[]) => (await rpc(service.url, method, params)).body;
  return { chain, nodes, ask };
};

const logsFrom = ({ head }: TruthChain, from: number): readonly unknown[] => {
  const logs: (readonly unknown[])[] = [];
  for (let block: typeof head | undefined = head; block && block.number >= from; block = block.parent) {
    logs.unshift(block.logs);
  }
  return logs.flat();
};

const { method, params } = range.request;

for (const { name, error } of range.nodeReplies) {
  test(`a range inside the head is answered although a node says "not yet" (${name})`, async (t) => {
    // A machine that is behind, with and without another node.
    for (const refusals of [[3], [Number.POSITIVE_INFINITY, 0]]) {
      const { chain, ask } = await startRefusing(t, error, method, refusals);
      const { result, error: refused } = await ask(...params);
      assert.equal(refused, undefined);
      assert.deepEqual(result, logsFrom(chain, Number(params[0].fromBlock)));
    }
  });

  test(`no client gets -32602 for a range inside the head (${name})`, async (t) => {
    const { ask } = await startRefusing(t, error, method, [Number.POSITIVE_INFINITY]);
    const { error: refused } = await ask(...params);
    assert.ok(refused !== undefined && refused.code !== -32_602, JSON.stringify(refused));
  });
}

test("a client's own range above the head stays -32602", async (t) => {
  const { chain, ask } = await startRefusing(t, {}, method, [0]);
  const above = `0x${(chain.head.number + 1).toString(16)}`;
  assert.equal((await ask({ fromBlock: "0x64", toBlock: above })).error?.code, -32_602);
});

test("a fee history inside the head is answered although a node says that the block is beyond its head", async (t) => {
  for (const code of [-32_602, -32_000]) {
    const error = { code, message: "request beyond head block: requested 150, head 148" };
    const { ask } = await startRefusing(t, error, "eth_feeHistory", [3]);
    assert.equal((await ask("0x2", "latest", [])).error, undefined);
  }
});

interface IgnoredOverrides {
  readonly request: { readonly params: readonly [call: object, block: string, overrides: object] };
  readonly right: { readonly result: string };
}

test("forebay check names a node that ignores overrides", async (t) => {
  const { request, right } = readJson("reports/11-ignored-overrides.json") as IgnoredOverrides;
  const honestly = (overrides: unknown) => (isDeepStrictEqual(overrides, request.params[2]) ? right.result : "0x");
  const honest = await createFakeNode({ handlers: { eth_call: ([, , overrides]) => honestly(overrides) } });
  const ignoring = await createFakeNode({ handlers: { eth_call: () => "0x" } });
  t.after(() => Promise.all([honest.close(), ignoring.close()]));
  const chains = [{ name: "main", nodes: [honest, ignoring].map(({ url }) => ({ url })) }];
  const named = (await checkConfig(configSchema.parse({ chains }))).filter(({ text }) => text.includes("overrides"));
  assert.deepEqual(
    named.map(({ level, subject }) => [level, subject]),
    [["warn", "main/node2"]],
  );
});

test("a node's reply with an error that is null accepts a subscription", async (t) => {
  const { nodeReply } = readJson("reports/28-error-null.json") as { readonly nodeReply: string };
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  server.on("connection", (socket) => socket.on("message", () => socket.send(nodeReply)));
  await once(server, "listening");
  t.after(() => {
    for (const socket of server.clients) {
      socket.terminate();
    }
    server.close();
  });
  const { signal } = new AbortController();
  const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const pending = new PendingTransactions({ nodes: [{ url, headers: {} }], signal });
  const stop = await pending.subscribe(false, () => undefined);
  stop();
});
