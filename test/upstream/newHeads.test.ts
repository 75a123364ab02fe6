import assert from "node:assert/strict";
import { test } from "node:test";
import { createUpstreams } from "../../src/upstream/upstreams.ts";
import { createFakeNode } from "../support/fakeNode.ts";
import { silent } from "../support/upstreamQuestion.ts";

test("new heads come over the WebSocket without a call, and again after it was lost", async (t) => {
  const fake = await createFakeNode();
  const { url, wsUrl } = fake;
  const upstreams = createUpstreams({ chain: "test", nodes: [{ url, wsUrl }], blockTimeMs: 60_000 }, silent());
  t.after(async () => {
    await upstreams.close();
    await fake.close();
  });
  const { signal } = new AbortController();
  const subscribed = fake.asked("eth_subscribe");
  await upstreams.ready;
  await subscribed;
  for (let lost = 0; lost < 2; lost += 1) {
    const calls = fake.count("eth_getBlockByNumber");
    const next = upstreams.heads.next(signal);
    fake.chain.mine();
    // Changes of safe, finalized or the ring's depth may come before.
    let change = await next;
    while (change.to.length === 0) {
      change = await upstreams.heads.next(signal);
    }
    assert.equal(change.heads.latest.hash, fake.chain.latest.hash);
    assert.ok(fake.count("eth_getBlockByNumber") - calls <= 2);
    const again = fake.asked("eth_subscribe");
    fake.closeSockets();
    await again;
  }
});
