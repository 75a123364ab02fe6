import assert from "node:assert/strict";
import { test } from "node:test";
import { LoopWatch, ViewGate } from "../../src/cluster/viewGate.ts";

/** A gate whose clock and ticks the test controls. */
const createGate = (t: { after(end: () => void): void }) => {
  let nowMs = 0;
  const watch = new LoopWatch(() => nowMs);
  t.after(() => watch.close());
  const gate = new ViewGate(watch);
  const pass = (ms: number): void => {
    nowMs += ms;
  };
  return { gate, watch, pass };
};

test("requests wait between the acknowledgement of a view and its commit", async (t) => {
  const { gate } = createGate(t);
  assert.equal(gate.wait(), undefined);
  gate.hold();
  const waiting = gate.wait();
  assert.ok(waiting instanceof Promise);
  gate.open();
  await waiting;
  assert.equal(gate.wait(), undefined);
});

test("a process that was stopped answers nothing until it has read its messages", async (t) => {
  const { gate, watch, pass } = createGate(t);
  pass(300);
  const waiting = gate.wait();
  assert.ok(waiting instanceof Promise);
  watch.tick();
  assert.ok(gate.wait() instanceof Promise, "messages may have arrived after the last poll");
  watch.tick();
  await waiting;
  assert.equal(gate.wait(), undefined);
});

test("a view that is prepared while the process is stopped keeps the gate closed", (t) => {
  const { gate, watch, pass } = createGate(t);
  pass(300);
  const waiting = gate.wait();
  gate.hold();
  watch.tick();
  watch.tick();
  assert.equal(gate.wait(), waiting);
  gate.open();
  assert.equal(gate.wait(), undefined);
});

test("when the gate is closed for good, its requests are rejected with 503", async (t) => {
  const { gate } = createGate(t);
  gate.hold();
  const waiting = gate.wait();
  gate.close();
  await assert.rejects(async () => waiting, { name: "RpcError", status: 503 });
});
