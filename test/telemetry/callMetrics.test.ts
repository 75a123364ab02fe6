import assert from "node:assert/strict";
import { test } from "node:test";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { createService } from "../support/servers/service.ts";

test("a client that disconnects before the response is counted as left, not as an error of the node", async (t) => {
  const node = await createFakeNode();
  const service = await createService({ nodes: [{ url: node.url }], pending: { mode: "node" } });
  t.after(async () => {
    await service.close();
    await node.close();
  });
  node.faults.methods = ["eth_gasPrice"];
  node.faults.answer = "hang";
  const leaving = new AbortController();
  const asked = node.asked("eth_gasPrice");
  const answer = fetch(service.url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: '{"jsonrpc":"2.0","id":1,"method":"eth_gasPrice"}',
    signal: leaving.signal,
  });
  await asked;
  leaving.abort();
  await assert.rejects(answer);
  const counted = (outcome: string) =>
    metric(service.opsUrl, "forebay_requests_total", 'method="eth_gasPrice"', `outcome="${outcome}"`);
  await until(async () => (await counted("left")) === 1, "he is counted");
  assert.deepEqual([await counted("nodeError"), await counted("internal"), await counted("unavailable")], [0, 0, 0]);
});

test("an unknown error of a node counts as a failed call, and an error that every node would return does not", async (t) => {
  const node = await createFakeNode();
  const service = await createService({ nodes: [{ url: node.url }], pending: { mode: "node" } });
  t.after(async () => {
    await service.close();
    await node.close();
  });
  node.faults.methods = ["eth_getBalance"];
  const calls = async (error: { readonly code: number; readonly message: string }) => {
    node.faults.error = error;
    await rpc(service.url, "eth_getBalance", [`0x${"11".repeat(20)}`, "0x5"]);
    const counted = (outcome: string) =>
      metric(service.opsUrl, "forebay_requests_total", 'method="eth_getBalance"', `outcome="${outcome}"`);
    return [await counted("unavailable"), await counted("nodeError")];
  };
  assert.deepEqual(await calls({ code: -32_603, message: "zorp" }), [1, 0]);
  assert.deepEqual(await calls({ code: -32_000, message: "zorp" }), [2, 0]);
  assert.deepEqual(await calls({ code: -32_602, message: "invalid argument 0" }), [2, 1]);
  // Calls of forebay's own may have failed too.
  assert.ok((await metric(service.opsUrl, "forebay_upstream_requests_total", 'outcome="other"')) >= 2);
});
