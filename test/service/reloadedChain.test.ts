import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { rpc } from "../support/clients/rpc.ts";
import { settled } from "../support/clients/settled.ts";
import { until } from "../support/clients/until.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode, type FakeNodeOptions } from "../support/fakes/fakeNode.ts";
import { createService } from "../support/servers/service.ts";

const start = async (t: TestContext, options: FakeNodeOptions) => {
  const node = await createFakeNode({ handlers: { eth_getBlockTransactionCountByHash: () => "0x0" }, ...options });
  const service = await createService({ nodes: [{ url: node.url, name: "own" }], chainId: 31_337 });
  t.after(async () => {
    await service.close();
    await node.close();
  });
  return { node, service };
};

test("a reload that changes a chain is applied although its measured block time is no whole number", async (t) => {
  // 22 s for 7 blocks.
  const { service } = await start(t, { chain: createFakeChain({ height: 7, secondsPerBlock: 3.2 }) });
  await settled(service);
  const [before] = service.chains;
  assert.ok(before !== undefined && !Number.isInteger(before.upstreams.heads.blockTimeMs));
  await service.reload({}, { upstream: { timeoutMs: 20_000 } });
  assert.notEqual(service.chains[0], before);
  assert.equal((await rpc(service.url, "eth_getBalance", [`0x${"11".repeat(20)}`, "0x5"])).body.result, "0x5");
});

/** The series of the chains, with the value of each gauge. */
const readSeries = async (opsUrl: string): Promise<ReadonlyMap<string, string>> => {
  const lines = (await (await fetch(`${opsUrl}/metrics`)).text()).split("\n");
  return new Map(
    lines.filter((line) => /^forebay_.*chain="/.test(line)).map((line) => [line.replace(/ \S+$/, ""), line]),
  );
};

test("a refused reload leaves no series of its chain, and those of the active one as they were", async (t) => {
  const { node, service } = await start(t, {});
  const other = await createFakeNode({ chain: createFakeChain({ chainId: 77 }) });
  t.after(() => other.close());
  await settled(service);
  const before = await readSeries(service.opsUrl);
  for (const nodes of [
    [{ url: other.url, name: "own" }],
    [
      { url: node.url, name: "own" },
      { url: other.url, name: "stranger" },
    ],
  ]) {
    await assert.rejects(service.reload({}, { nodes }), /77/);
    const after = await readSeries(service.opsUrl);
    assert.deepEqual([...after.keys()], [...before.keys()]);
    for (const name of ["wrong_chain", "breaker_open", "hung", "cordoned"]) {
      const series = `forebay_upstream_${name}{chain="chain",node="own"}`;
      assert.equal(after.get(series), before.get(series));
      assert.equal(after.get(series), `${series} 0`);
    }
  }
});

test("after a reload that is applied, a node that is gone has no series", async (t) => {
  const { node, service } = await start(t, {});
  const own = { url: node.url, name: "own" };
  const names = async (): Promise<boolean> =>
    [...(await readSeries(service.opsUrl)).keys()].some((key) => key.includes('node="second"'));
  await service.reload({}, { nodes: [own, { url: node.url, name: "second" }] });
  assert.equal(await names(), true);
  await service.reload({}, { nodes: [own] });
  await until(async () => !(await names()), "its series are gone after the last request");
});

test("a reload that waits for a node ends when forebay closes, and none begins after it", async (t) => {
  const node = await createFakeNode();
  t.after(() => node.close());
  const service = await createService({ nodes: [{ url: node.url }] });
  const toDeadNode = () => service.reload({}, { nodes: [{ url: "http://127.0.0.1:1" }] });
  const reload = assert.rejects(toDeadNode(), /forebay is closed/);
  await service.close();
  await reload;
  await assert.rejects(toDeadNode(), /forebay is closed/);
});
