import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { PLAIN_READS } from "../../src/nodes/errorKind.ts";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode, type FakeNode } from "../support/fakes/fakeNode.ts";
import { FakeError } from "../support/fakes/front.ts";
import { createService, type Service } from "../support/servers/service.ts";

const chain = createFakeChain({ height: 100 });

/** Texts that count against a node if they are its own. */
const TEXTS = [
  "unauthorized",
  "payment required",
  "rate_limit",
  "too many requests",
  "you have reached the free tier limit",
  "the service is temporarily unavailable",
  "no backend is currently healthy to serve traffic",
  "missing trie node",
] as const;

/** Calls whose errors quote the client or a contract, as geth, reth and anvil write them. */
const QUOTES: Record<
  string,
  { readonly params: (text: string) => unknown[]; readonly error: (text: string) => FakeError }
> = {
  trace_filter: {
    params: (text) => [{ [text]: 1 }],
    error: (text) => new FakeError(-32_602, `unknown field \`${text}\`, expected one of \`fromBlock\``),
  },
  debug_traceCall: {
    params: (text) => [{ to: `0x${"1".repeat(40)}` }, "0x20", { tracer: text }],
    error: (text) => new FakeError(-32_000, `ReferenceError: ${text} is not defined at <eval>:1:1(0)`),
  },
  debug_traceTransaction: {
    params: (text) => [`0x${"2".repeat(64)}`, { tracer: `{result: () => { throw '${text}' }, fault: () => 0}` }],
    error: (text) =>
      new FakeError(-32_000, `${text} at result (<eval>:1:58(3))    in server-side tracer function 'result'`),
  },
  eth_call: {
    params: () => [{ to: `0x${"3".repeat(40)}`, gas: "0x5208" }, "0x20"],
    error: (text) => new FakeError(-32_603, `EVM error: ${text}`),
  },
};

interface Rig {
  readonly service: Service;
  readonly nodes: readonly FakeNode[];
  /** The text that the contract of `eth_call` returns. */
  contract: { text: string };
}

const start = async (t: TestContext): Promise<Rig> => {
  const contract = { text: "" };
  const quoted = (params: readonly unknown[]): string => {
    const found = TEXTS.find((text) => JSON.stringify(params).includes(text));
    return found ?? contract.text;
  };
  const handlers = Object.fromEntries(
    Object.entries(QUOTES).map(([method, { error }]) => [
      method,
      (params: readonly unknown[]) => {
        throw error(quoted(params));
      },
    ]),
  );
  const nodes = await Promise.all([createFakeNode({ chain, handlers }), createFakeNode({ chain, handlers })]);
  const service = await createService(
    { nodes: nodes.map(({ url }, index) => ({ url, name: `node${index + 1}` })), simulate: { enabled: false } },
    { cache: { memoryBytes: 0 } },
  );
  t.after(async () => {
    await service.close();
    await Promise.all(nodes.map((node) => node.close()));
  });
  const haveHeads = () =>
    service.chains.every(({ upstreams }) => upstreams.nodes.every(({ head }) => head === chain.latest.number));
  await until(haveHeads, "the heads of all nodes are known");
  return { service, nodes, contract };
};

const assertInUse = async ({ chains, opsUrl }: Service, what: string): Promise<void> => {
  for (const { upstreams } of chains) {
    for (const node of upstreams.nodes) {
      assert.ok(node.available, `${node.name} is out after ${what}: ${node.unusedReason}`);
      assert.equal(node.oldest, 0n, `${node.name} has pruned after ${what}`);
    }
  }
  assert.equal(await metric(opsUrl, "forebay_upstream_rejecting"), 0, what);
  assert.equal(await metric(opsUrl, "forebay_upstream_breaker_open"), 0, what);
};

for (const [method, { params }] of Object.entries(QUOTES)) {
  test(`a client whose words stand in the errors of ${method} puts no node out, and pauses none`, async (t) => {
    const { service, contract } = await start(t);
    for (const text of TEXTS) {
      contract.text = text;
      for (let call = 0; call < 6; call += 1) {
        const { body } = await rpc(service.url, method, params(text));
        assert.ok(body.error?.message.includes(text), JSON.stringify(body));
      }
      await assertInUse(service, `${method} with ${text}`);
    }
  });
}

test("no word of a client reaches a node in a plain read", async (t) => {
  const { service, nodes } = await start(t);
  const params = ["unauthorized", "unauthorized", ["unauthorized"]];
  for (const method of PLAIN_READS) {
    for (const list of [params, [`0x${"1".repeat(40)}`, ...params], [{ unauthorized: "unauthorized" }]]) {
      await rpc(service.url, method, list);
    }
  }
  for (const { requests } of nodes) {
    assert.deepEqual(
      requests.filter(({ body }) => body.includes("unauthorized")).map(({ body }) => body),
      [],
    );
  }
});
