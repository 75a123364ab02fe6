import assert from "node:assert/strict";
import { test } from "node:test";
import type { HeadChange } from "../../src/core/heads.ts";
import { Upstreams } from "../../src/heads/upstreams.ts";
import { silent } from "../support/builders/silent.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";

test("new heads arrive over the WebSocket without a call per head, and again after a reconnect", async (t) => {
  const fake = await createFakeNode();
  const { url, wsUrl } = fake;
  const upstreams = new Upstreams({ chain: "test", nodes: [{ url, wsUrl }], blockTimeMs: 60_000 }, silent());
  t.after(async () => {
    await upstreams.close();
    await fake.close();
  });
  const { signal } = new AbortController();
  /** Waits for a change of latest. Changes of safe, finalized or the ring's depth may precede it. */
  const nextBlocks = async (): Promise<HeadChange> => {
    for (;;) {
      const change = await upstreams.heads.next(signal);
      if (change.to.length > 0) {
        return change;
      }
    }
  };
  const subscribed = fake.asked("eth_subscribe");
  await upstreams.ready;
  await subscribed;
  // A reorganisation is published completely if it does not reach below the ring.
  while (upstreams.heads.current()?.oldest === fake.chain.latest.number) {
    await upstreams.heads.next(signal);
  }
  for (let lost = 0; lost < 2; lost += 1) {
    const calls = fake.count("eth_getBlockByNumber");
    const next = nextBlocks();
    fake.chain.mine();
    assert.equal((await next).heads.latest.hash, fake.chain.latest.hash);
    assert.ok(fake.count("eth_getBlockByNumber") - calls <= 2);
    fake.chain.reorg(3, 3);
    const change = await nextBlocks();
    assert.deepEqual([change.from.length, change.to.length], [3, 3], "a new branch is published completely");
    assert.equal(change.heads.latest.hash, fake.chain.latest.hash);
    const again = fake.asked("eth_subscribe");
    fake.closeSockets();
    await again;
  }
});
