import assert from "node:assert/strict";
import { test } from "node:test";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { readyz, start, startNode, UNREACHABLE } from "./startedReadiness.ts";

test("any is ready after 10 s if one chain has no node, and the other chains are not delayed", async (t) => {
  const [good, hanging] = await Promise.all([startNode(t), startNode(t)]);
  hanging.faults.answer = "hang";
  const { url, opsUrl } = await start(t, { dead: UNREACHABLE, hanging: hanging.url, good: good.url });
  const startedMs = performance.now();
  await until(async () => (await readyz(opsUrl, "?chain=good")).status === 200, "the good chain is known");
  assert.equal((await rpc(`${url}/good`, "eth_getBalance", [`0x${"00".repeat(20)}`, "0x5"])).body.result, "0x5");
  assert.equal((await rpc(`${url}/dead`, "eth_blockNumber")).status, 503);

  const early = await readyz(opsUrl);
  assert.ok(performance.now() - startedMs < 5_000, "a node that hangs delays nothing");
  assert.equal(early.status, 503);
  assert.deepEqual(
    early.chains.map(({ name, ready, reason }) => [name, ready, reason]),
    [
      ["dead", false, "no node reachable"],
      ["hanging", false, "no node reachable"],
      ["good", true, undefined],
    ],
  );
  assert.equal(early.chains[0]?.nodes?.node1, "ECONNREFUSED");
  assert.equal((await readyz(opsUrl, "?chain=dead")).status, 503);

  await until(async () => (await readyz(opsUrl)).status === 200, "ready with one chain");
  assert.ok(performance.now() - startedMs > 9_000, "not before the others had their time");
  const late = await readyz(opsUrl);
  assert.deepEqual([late.ready, late.chains[0]?.ready, late.chains[2]?.ready], [true, false, true]);
  assert.equal((await readyz(opsUrl, "?chain=dead")).status, 503);
  assert.equal(await metric(opsUrl, "forebay_chain_serving", 'chain="dead"'), 0);
  assert.equal(await metric(opsUrl, "forebay_chain_serving", 'chain="good"'), 1);
});
