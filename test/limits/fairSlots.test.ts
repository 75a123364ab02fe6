import assert from "node:assert/strict";
import { test } from "node:test";
import { FairSlots } from "../../src/limits/fairSlots.ts";

const connection = {};
const owner = (clientId: string) => ({ clientId, group: connection });

test("tasks wait for a place, and clients take turns", async () => {
  const slots = new FairSlots({ max: 1, overloaded: "busy" });
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
  const slots = new FairSlots({ max: 1, maxWaiting: 2, overloaded: "busy" });
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
  const slots = new FairSlots({ max: 1, overloaded: "busy" });
  const failed = slots.run(owner("a"), () => Promise.reject(new Error("broken")));
  const next = slots.run(owner("a"), async () => 1);
  await assert.rejects(failed, /broken/);
  assert.equal(await next, 1);
});
