import assert from "node:assert/strict";
import { test } from "node:test";
import { metric } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { readyz, start, startNode, UNREACHABLE } from "./startedReadiness.ts";

test("any is ready after 10 s if one chain has no node", async (t) => {
  const [good, hanging] = await Promise.all([startNode(t), startNode(t)]);
  hanging.faults.answer = "hang";
  const { opsUrl } = await start(t, { dead: UNREACHABLE, hanging: hanging.url, good: good.url });
  const startedMs = performance.now();
  await until(async () => (await readyz(opsUrl)).status === 200, "ready with one chain");
  assert.ok(performance.now() - startedMs > 9_000, "not before the others had their time");
  const late = await readyz(opsUrl);
  assert.deepEqual([late.ready, late.chains[0]?.ready, late.chains[2]?.ready], [true, false, true]);
  assert.equal((await readyz(opsUrl, "?chain=dead")).status, 503);
  assert.equal(await metric(opsUrl, "forebay_chain_serving", 'chain="dead"'), 0);
  assert.equal(await metric(opsUrl, "forebay_chain_serving", 'chain="good"'), 1);
});
