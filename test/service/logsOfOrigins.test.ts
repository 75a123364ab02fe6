import assert from "node:assert/strict";
import { after, before, type TestContext, test } from "node:test";
import { metric, rpc } from "../support/clients/rpc.ts";
import { settled } from "../support/clients/settled.ts";
import { until } from "../support/clients/until.ts";
import { type Lie, type LyingNode, startLyingNode } from "../support/fakes/lyingNode.ts";
import { createSealedChain, type SealedChain } from "../support/servers/sealedChain.ts";
import { createService, type Service } from "../support/servers/service.ts";

const LOGS = "eth_getLogs";
const SEGMENT = { fromBlock: "0x0", toBlock: "0x7f" };
/** Enough that the segment is final. */
const EMPTY_BLOCKS = 160;
/** It leaves out one of the logs of a block, so that blooms show nothing. */
const ONE_LEFT_OUT: Lie = {
  ...{ name: "one log left out", methods: [LOGS] },
  result: (result, { params: [filter] }) =>
    Array.isArray(result) && Object(filter).blockHash === undefined ? result.filter((_, index) => index !== 1) : result,
};

let chain: SealedChain;
before(async () => {
  chain = await createSealedChain(EMPTY_BLOCKS);
});
after(() => chain.devnet.close());

/** No node hangs here. Each call may take so long that none fails on a busy machine. */
const TIMEOUT_MS = 60_000;
/** Once open, a breaker stays open for longer than a call may take. */
const OPEN_MS = 10 * TIMEOUT_MS;

interface Stage {
  readonly service: Service;
  /** The first one is asked first. */
  readonly nodes: readonly LyingNode[];
}

const start = async (t: TestContext, origins: number, agree?: 1 | 2, failures = 5): Promise<Stage> => {
  const nodes = await Promise.all(Array.from({ length: origins }, () => startLyingNode(t, chain.devnet.anvilUrl)));
  const service = await createService({
    nodes: nodes.map(({ url }, index) => ({ name: `node${index}`, url, priority: Math.min(index, 1) })),
    ...{ pending: { mode: "node" }, state: { follow: false } },
    upstream: { hedge: { maxShare: 0 }, timeoutMs: TIMEOUT_MS, breaker: { failures, openMs: OPEN_MS } },
    ...(agree !== undefined && { reads: { agree } }),
  });
  t.after(() => service.close());
  await settled(service);
  return { service, nodes };
};

const ask = async ({ url }: Service): Promise<readonly unknown[]> => {
  const { body, text } = await rpc(url, LOGS, [SEGMENT]);
  assert.equal(body.error, undefined, text);
  assert.ok(Array.isArray(body.result));
  return body.result;
};

const truth = async (): Promise<readonly unknown[]> => (await chain.devnet.rpc(LOGS, SEGMENT)) as readonly unknown[];

const countCalls = (nodes: readonly LyingNode[]): number =>
  nodes.reduce((sum, { calls }) => sum + (calls.get(LOGS) ?? 0), 0);

const isSuspended = ({ opsUrl }: Service, node: string): Promise<number> =>
  metric(opsUrl, "forebay_upstream_suspended", `node="${node}"`);

test("a log that the preferred node leaves out is found by another origin, and the node is suspended", async (t) => {
  const { service, nodes } = await start(t, 3, 2);
  const [preferred] = nodes;
  assert.ok(preferred);
  preferred.lies = [ONE_LEFT_OUT];
  assert.deepEqual(await ask(service), await truth());
  assert.ok((preferred.lied.get(ONE_LEFT_OUT.name) ?? 0) > 0);
  assert.equal(await isSuspended(service, "node0"), 1);
  const calls = countCalls(nodes);
  assert.deepEqual(await ask(service), await truth());
  assert.equal(countCalls(nodes), calls, "it is cached");
});

test("the other origin that leaves out a log is suspended, and a third one agrees", async (t) => {
  const { service, nodes } = await start(t, 3, 2);
  const others = nodes.slice(1);
  let liar: LyingNode | undefined;
  const once: Lie = {
    ...ONE_LEFT_OUT,
    result: (result, call, askTruth) => {
      liar ??= others.find(({ lies, calls }) => lies.includes(once) && (calls.get(LOGS) ?? 0) > 0);
      return (liar?.lied.get(once.name) ?? 0) > 0 ? result : ONE_LEFT_OUT.result?.(result, call, askTruth);
    },
  };
  for (const node of others) {
    node.lies = [once];
  }
  assert.deepEqual(await ask(service), await truth());
  assert.equal((await isSuspended(service, "node1")) + (await isSuspended(service, "node2")), 1);
  assert.equal(await isSuspended(service, "node0"), 0);
  assert.equal(countCalls(nodes), 3);
});

for (const { agree, calls } of [
  { agree: 2, calls: 2 },
  { agree: undefined, calls: 1 },
] as const) {
  test(`with reads.agree ${agree ?? "by default"}, a range costs ${calls} calls, and no further ones once it is cached`, async (t) => {
    const { service, nodes } = await start(t, 2, agree);
    assert.deepEqual(await ask(service), await truth());
    assert.deepEqual(await ask(service), await truth());
    assert.equal(countCalls(nodes), calls);
  });
}

test("logs that one origin alone returns are served, and not cached", async (t) => {
  const { service, nodes } = await start(t, 2, 2);
  const [, other] = nodes;
  assert.ok(other);
  const refusal = { code: -32_601, message: "the method eth_getLogs does not exist" };
  other.lies = [{ name: "none", methods: [LOGS], response: (_, { id }) => ({ jsonrpc: "2.0", id, error: refusal }) }];
  assert.deepEqual(await ask(service), await truth());
  const calls = nodes[0]?.calls.get(LOGS) ?? 0;
  assert.deepEqual(await ask(service), await truth());
  assert.equal(nodes[0]?.calls.get(LOGS), calls + 1);
});

test("an origin whose breaker is open is not waited for: the logs of the other one are served, and not cached", async (t) => {
  const { service, nodes } = await start(t, 2, 2, 1);
  const [answering, other] = nodes;
  assert.ok(answering && other);
  const expected = await truth();
  other.lies = [{ name: "down", http: () => ({ status: 502, text: "" }) }];
  const isOpen = async () => (await metric(service.opsUrl, "forebay_upstream_breaker_open", 'node="node1"')) === 1;
  await until(isOpen, "the breaker is open");
  for (const calls of [1, 2]) {
    assert.deepEqual(await ask(service), expected);
    assert.equal(answering.calls.get(LOGS), calls);
  }
});
