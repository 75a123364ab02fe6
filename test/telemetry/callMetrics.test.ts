import assert from "node:assert/strict";
import { test } from "node:test";
import { metric, rpc } from "../support/clients/rpc.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { createService } from "../support/servers/service.ts";

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
