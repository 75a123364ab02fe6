import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { createService, type Service } from "../support/servers/service.ts";

const HEIGHT = 100;
const PRICE = 20;
const READS = 10;

let nextAddress = 1;
const readBalance = ({ url }: Service) =>
  rpc(url, "eth_getBalance", [`0x${(nextAddress++).toString(16).padStart(40, "0")}`, "0x20"]);

/** Starts two nodes. The first one, which is asked first, may get READS balances a day. Nothing else costs units. */
const start = async (t: TestContext) => {
  const chain = createFakeChain({ height: HEIGHT });
  const [first, second] = await Promise.all([createFakeNode({ chain }), createFakeNode({ chain })]);
  const nodesWith = (reads: number) => [
    { name: "first", url: first.url, unitsPerDay: reads * PRICE },
    { name: "second", url: second.url, priority: 1 },
  ];
  const rest = { cache: { memoryBytes: 0 }, usage: { units: { "*": 0, eth_getBalance: PRICE, eth_getLogs: PRICE } } };
  const service = await createService(
    { nodes: nodesWith(READS), upstream: { hedge: { maxShare: 0 } }, verify: "off" },
    rest,
  );
  const reload = (reads: number) => service.reload(rest, { nodes: nodesWith(reads) });
  t.after(async () => {
    await service.close();
    await Promise.all([first.close(), second.close()]);
  });
  await until(
    async () => (await metric(service.opsUrl, "forebay_upstream_head")) === HEIGHT * 2,
    "both nodes have reported a head",
  );
  const warnings: (readonly [string, unknown, unknown])[] = [];
  t.mock.method(service.telemetry.log, "warn", ({ node, spentUnits }: Record<string, unknown>, text: string) => {
    warnings.push([text, node, spentUnits]);
  });
  return { chain, first, second, service, reload, warnings };
};

/** Reads balances until the units of the first node are spent. */
const spendAll = async ({ first, second, service }: Awaited<ReturnType<typeof start>>): Promise<void> => {
  for (let read = 0; read < READS + 5; read++) {
    assert.equal((await readBalance(service)).body.result, "0x20");
  }
  assert.deepEqual([first.count("eth_getBalance"), second.count("eth_getBalance")], [READS, 5]);
};

test("a node that has got its units of the day is not used, and the operator is told at 80 % and at 100 %", async (t) => {
  const rig = await start(t);
  const { first, chain, service, warnings } = rig;
  const ratio = () => metric(service.opsUrl, "forebay_upstream_budget_ratio", 'node="first"');
  for (let read = 0; read < 0.8 * READS; read++) {
    await readBalance(service);
  }
  await until(async () => (await ratio()) === 0.8, "the metric has the share");
  for (let read = 0; read < 10; read++) {
    await readBalance(service);
  }
  assert.equal(first.count("eth_getBalance"), READS);
  await until(async () => (await ratio()) === 1, "the metric has the whole");
  assert.deepEqual(warnings, [
    ["80 % of the units of today are spent", "first", 0.8 * READS * PRICE],
    [
      "the units of today are spent: the node is used only if no other can answer, until 00:00 UTC",
      "first",
      READS * PRICE,
    ],
  ]);
  const ready = JSON.parse(await (await fetch(`${service.opsUrl}/readyz`)).text());
  assert.deepEqual([ready.ready, ready.chains[0].nodes], [true, { first: "its units of the day are spent" }]);

  // Its heads are not read any more. A poll may have been in flight.
  const polls = first.count("eth_getBlockByNumber");
  chain.mine();
  await until(
    async () => Number((await rpc(service.url, "eth_blockNumber")).body.result) === HEIGHT + 1,
    "the other node's head is served",
  );
  assert.ok(first.count("eth_getBlockByNumber") <= polls + 1);
  assert.equal(await metric(service.opsUrl, "forebay_upstream_lag_seconds", 'node="first"'), 0);
});

test("a node without units answers the reads and log queries that the other node fails", async (t) => {
  const rig = await start(t);
  const { first, second, service } = rig;
  await spendAll(rig);
  second.faults.error = { code: -32_099, message: "something that nobody has ever seen" };
  assert.equal((await readBalance(service)).body.result, "0x20");
  assert.equal(first.count("eth_getBalance"), READS + 1);
  Object.assign(second.faults, { error: undefined, answer: 500, methods: ["eth_getLogs"] });
  const logs = await rpc(service.url, "eth_getLogs", [{ fromBlock: "0x1", toBlock: "0x20" }]);
  assert.deepEqual([logs.body.result, first.count("eth_getLogs")], [[], 1]);
});

test("a node without units is used while no other one can be reached", async (t) => {
  const rig = await start(t);
  const { first, second, service } = rig;
  await spendAll(rig);
  await second.close();
  for (let read = 0; read < 10; read++) {
    assert.equal((await readBalance(service)).body.result, "0x20");
  }
  assert.equal(first.count("eth_getBalance"), READS + 10);
});

test("a reload that raises the units of a node uses it again, and keeps what it has got", async (t) => {
  const rig = await start(t);
  const { first, service, reload } = rig;
  await spendAll(rig);
  await reload(READS + 3);
  for (let read = 0; read < 5; read++) {
    assert.equal((await readBalance(service)).body.result, "0x20");
  }
  assert.equal(first.count("eth_getBalance"), READS + 3);
});
