import assert from "node:assert/strict";
import { test } from "node:test";
import { createFairScheduler, type Lease } from "../../src/limits/fairScheduler.ts";
import { ANY, createSplit, range } from "../logs/askLogs.ts";
import { createFakeChain, fakeHeads } from "../logs/fakeChain.ts";
import { createFakeLogNode } from "../logs/fakeLogNode.ts";
import { createContext } from "../support/builders/request.ts";

const node = createFakeLogNode({ chain: createFakeChain([[]]) });
const asker = (clientId: string, group: object = {}) => ({ clientId, group, signal: new AbortController().signal });

const drain = async (waiting: readonly Promise<Lease | undefined>[]) => {
  for (const each of waiting) {
    each.then((lease) => lease?.release());
  }
  await Promise.all(waiting);
};

test("clients take turns, and so do the queries of one client", async () => {
  const slots = createFairScheduler({ maxRanges: 1 });
  const first = await slots.acquire(asker("busy"), () => node);
  const served: string[] = [];
  const wait = (who: string, { clientId, group, signal } = asker(who)) =>
    slots
      .acquire({ clientId, group, signal }, () => node)
      .then((lease) => {
        served.push(who);
        return lease;
      });
  const wide = asker("wide");
  const narrow = { ...asker("wide") };
  const waiting = [
    ...Array.from({ length: 4 }, () => wait("wide", wide)),
    wait("wide, narrow", narrow),
    wait("other", asker("other")),
  ];
  first?.release();
  await drain(waiting);
  assert.deepEqual(served, ["wide", "other", "wide, narrow", "wide", "wide", "wide"]);
});

test("an aborted request leaves the queue, and a request without a usable node gets undefined", async () => {
  const slots = createFairScheduler({ maxRanges: 1 });
  const first = await slots.acquire(asker("busy"), () => node);
  const leaver = new AbortController();
  const left = slots.acquire({ ...asker("leaver"), signal: leaver.signal }, () => node);
  leaver.abort(new Error("left"));
  await assert.rejects(left, { message: "left" });
  const none = slots.acquire(asker("other"), () => "none");
  first?.release();
  assert.equal(await none, undefined);
  assert.equal(slots.inFlight(node), 0);
});

test("fetch ranges in flight stay within the limits of node and process, and a small query is not starved", async () => {
  const chain = createFakeChain(Array.from({ length: 60_000 }, () => []));
  const slow = createFakeLogNode({ chain, latencyMs: 2 });
  const split = createSplit([slow], { rangesPerNode: () => 4, slots: createFairScheduler({ maxRanges: 3 }) });
  const heads = fakeHeads(chain, { finalized: 59_999, ring: 1 });
  let isWideDone = false;
  const wide = split.request(ANY, range(0, 59_999), createContext({ heads, clientId: "wide" })).then(() => {
    isWideDone = true;
  });
  await split.request(ANY, range(500, 509), createContext({ heads, clientId: "narrow" }));
  assert.equal(isWideDone, false);
  await wide;
  assert.ok(slow.mostInFlight() <= 3, `${slow.mostInFlight()} in flight`);
});
