import assert from "node:assert/strict";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { configSchema } from "../../src/config/schema.ts";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { readyz, start, startNode, UNREACHABLE } from "./startedReadiness.ts";

test("a chain without a node, or whose node hangs, does not delay the other chains", async (t) => {
  const [good, hanging] = await Promise.all([startNode(t), startNode(t)]);
  hanging.faults.answer = "hang";
  let hangs = true;
  void hanging.broken().then(() => {
    hangs = false;
  });
  const nodes = { dead: UNREACHABLE, hanging: hanging.url, good: good.url };
  const { url, opsUrl } = await start(t, nodes, { readiness: "all" });
  await until(async () => (await readyz(opsUrl, "?chain=good")).status === 200, "the good chain is known");
  assert.equal((await rpc(`${url}/good`, "eth_getBalance", [`0x${"00".repeat(20)}`, "0x5"])).body.result, "0x5");
  assert.equal((await rpc(`${url}/dead`, "eth_blockNumber")).status, 503);
  assert.ok(hangs, "it was not awaited");

  const whyDead = async () => (await readyz(opsUrl)).chains[0]?.nodes?.node1;
  await until(async () => (await whyDead()) === "ECONNREFUSED", "the dead node was asked");
  const early = await readyz(opsUrl);
  assert.equal(early.status, 503);
  assert.deepEqual(
    early.chains.map(({ name, ready, reason }) => [name, ready, reason]),
    [
      ["dead", false, "no node reachable"],
      ["hanging", false, "no node reachable"],
      ["good", true, undefined],
    ],
  );
  assert.equal((await readyz(opsUrl, "?chain=dead")).status, 503);
});

test("a list is ready once its chains are known, whatever the state of the others", async (t) => {
  const good = await startNode(t);
  const { opsUrl } = await start(t, { dead: UNREACHABLE, good: good.url }, { readiness: ["good"] });
  await until(async () => (await readyz(opsUrl)).status === 200, "ready");
  assert.deepEqual(
    (await readyz(opsUrl)).chains.map(({ ready }) => ready),
    [false, true],
  );
});

test("all is not ready while a chain is unknown, and the body has the reason", async (t) => {
  const [good, other, empty] = await Promise.all([startNode(t), startNode(t), startNode(t)]);
  other.faults.answer = 503;
  empty.faults.methods = ["eth_getBlockByNumber"];
  empty.faults.error = { code: -32_000, message: "block not found" };
  const { opsUrl } = await start(t, { good: good.url, other: other.url, empty: empty.url }, { readiness: "all" });
  const reasons = async () => (await readyz(opsUrl)).chains.map(({ reason }) => reason);
  const expected = [undefined, "no node reachable", "genesis missing"];
  await until(async () => isDeepStrictEqual(await reasons(), expected), "each has its reason");
  assert.equal((await readyz(opsUrl)).status, 503);
  other.faults.answer = undefined;
  empty.faults.error = undefined;
  await until(async () => (await readyz(opsUrl)).status === 200, "all are known");
});

test("the loss of every node leaves the process ready, and draining does not", async (t) => {
  const node = await startNode(t);
  const forebay = await start(t, { op: node.url }, { drainDelayMs: 1_000 });
  const { url, opsUrl } = forebay;
  await until(async () => (await readyz(opsUrl)).status === 200, "ready");
  node.faults.answer = "reset";
  const isServing = async () => (await readyz(opsUrl)).chains[0]?.serving;
  await until(async () => {
    await rpc(url, "eth_getBalance", [`0x${"00".repeat(20)}`, "0x5"]);
    return (await isServing()) === false;
  }, "its node is not asked");
  const lost = await readyz(opsUrl, "?chain=op");
  assert.deepEqual([lost.status, lost.chains[0]?.reason], [200, "no node can be asked now"]);
  assert.equal((await readyz(opsUrl)).status, 200);
  assert.equal(await metric(opsUrl, "forebay_chain_serving", 'chain="op"'), 0);

  const drained = forebay.drain();
  const draining = await readyz(opsUrl);
  assert.deepEqual([draining.status, draining.ready, draining.draining], [503, false, true]);
  assert.equal((await readyz(opsUrl, "?chain=op")).status, 503);
  await drained;
});

test("an unknown chain returns 404 with the names, and is an error of the configuration", async (t) => {
  const node = await startNode(t);
  const { opsUrl } = await start(t, { op: node.url });
  const response = await fetch(`${opsUrl}/readyz?chain=oq`);
  assert.equal(response.status, 404);
  assert.deepEqual(await response.json(), { error: "no such chain", chains: ["op"] });
  const { error } = configSchema.safeParse({
    chains: [{ name: "op", nodes: [{ url: node.url }] }],
    server: { readiness: ["op", "oq"] },
  });
  assert.deepEqual(
    error?.issues.map(({ path, message }) => [path.join("."), message]),
    [["server.readiness.1", 'no chain has the name "oq"; configured chains: op']],
  );
});
