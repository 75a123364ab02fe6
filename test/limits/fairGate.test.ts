import assert from "node:assert/strict";
import { test } from "node:test";
import type { Node } from "../../src/core/node.ts";
import { FairGate, type Lease } from "../../src/limits/fairGate.ts";
import { ANY, createSplit, range } from "../logs/askLogs.ts";
import { createFakeChain, fakeHeads } from "../logs/fakeChain.ts";
import { createFakeLogNode } from "../logs/fakeLogNode.ts";
import { createContext } from "../support/builders/request.ts";

const connection = {};
const owner = (clientId: string) => ({ clientId, group: connection });

test("tasks wait for a place, and clients take turns", async () => {
  const slots = new FairGate({ max: 1, overloaded: "busy" });
  const order: string[] = [];
  const first = Promise.withResolvers<void>();
  const run = (clientId: string, name: string) =>
    slots.run(owner(clientId), async () => {
      order.push(name);
      await (name === "a1" ? first.promise : undefined);
    });
  const all = [run("a", "a1"), run("a", "a2"), run("a", "a3"), run("b", "b1")];
  assert.deepEqual(order, ["a1"]);
  first.resolve();
  await Promise.all(all);
  assert.deepEqual(order, ["a1", "a2", "b1", "a3"]);
});

test("above the limit of tasks that wait, the newest of the client with most of them is refused", async () => {
  const slots = new FairGate({ max: 1, maxWaiting: 2, overloaded: "busy" });
  const first = Promise.withResolvers<void>();
  const running = slots.run(owner("a"), () => first.promise);
  const kept = slots.run(owner("a"), async () => "kept");
  const evicted = slots.run(owner("a"), async () => "evicted");
  const other = slots.run(owner("b"), async () => "other");
  await assert.rejects(evicted, { message: "busy", status: 503 });
  await assert.rejects(
    slots.run(owner("b"), async () => "late"),
    { message: "busy" },
  );
  first.resolve();
  await running;
  assert.deepEqual(await Promise.all([kept, other]), ["kept", "other"]);
});

test("a task that fails frees its place", async () => {
  const slots = new FairGate({ max: 1, overloaded: "busy" });
  const failed = slots.run(owner("a"), () => Promise.reject(new Error("broken")));
  const next = slots.run(owner("a"), async () => 1);
  await assert.rejects(failed, /broken/);
  assert.equal(await next, 1);
});

const node = createFakeLogNode({ chain: createFakeChain([[]]) });
const asker = (clientId: string, group: object = {}) => ({ clientId, group, signal: new AbortController().signal });

const drain = async (waiting: readonly Promise<Lease<Node> | undefined>[]) => {
  for (const each of waiting) {
    each.then((lease) => lease?.release());
  }
  await Promise.all(waiting);
};

test("clients take turns, and so do the queries of one client", async () => {
  const slots = new FairGate<Node>({ max: 1 });
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
  const slots = new FairGate<Node>({ max: 1 });
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
  const slow = createFakeLogNode({ chain, latencyMs: 2, maxLogRanges: 4 });
  const split = createSplit([slow], { slots: new FairGate<Node>({ max: 3 }) });
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
