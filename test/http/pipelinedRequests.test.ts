import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { PipelinedRequests } from "../../src/http/pipelinedRequests.ts";

/** Longer than all requests of one turn may take. */
const BUSY_MS = 1.5;
const MAX_IN_FLIGHT = 64;

class FakeSocket extends EventEmitter {
  destroyed = false;
  isReading = true;
  pause(): void {
    this.isReading = false;
  }
  resume(): void {
    this.isReading = true;
    this.emit("resume");
  }
}

const createSocket = () => {
  const fake = new FakeSocket();
  return { fake, socket: fake as unknown as Socket };
};

const spin = (): void => {
  const endMs = performance.now() + BUSY_MS;
  while (performance.now() < endMs) {
    // Busy.
  }
};

test("waiting requests start in turn with those of other connections, and other work runs in between", async () => {
  const pipelined = new PipelinedRequests();
  const order: string[] = [];
  for (const name of ["a", "b"]) {
    const { socket } = createSocket();
    for (let at = 0; at < 3; at++) {
      pipelined.wait(socket, () => {
        order.push(`${name}${at}`);
        spin();
      });
    }
  }
  assert.equal(order.length, 0, "none starts in the turn in which they arrive");
  while (order.length < 12) {
    await turn();
    order.push("other");
  }
  const started = order.filter((name) => name !== "other");
  assert.deepEqual(started, ["a0", "b0", "a1", "b1", "a2", "b2"]);
  for (const name of started.slice(1)) {
    assert.equal(order[order.indexOf(name) - 1], "other", order.join(" "));
  }
});

test("a connection is not read while requests wait, and has at most 64 in flight", async () => {
  const pipelined = new PipelinedRequests();
  const { fake, socket } = createSocket();
  const started: { end(): void }[] = [];
  for (let at = 0; at < MAX_IN_FLIGHT + 2; at++) {
    pipelined.wait(socket, () => started.push(pipelined.begin(socket)));
  }
  fake.resume();
  assert.equal(fake.isReading, false);
  for (let count = 0; count < MAX_IN_FLIGHT; count++) {
    await turn();
  }
  assert.equal(started.length, MAX_IN_FLIGHT);
  started.shift()?.end();
  started.shift()?.end();
  assert.equal(fake.isReading, false);
  await turn();
  await turn();
  assert.equal(started.length, MAX_IN_FLIGHT);
  assert.equal(fake.isReading, false);
  started.pop()?.end();
  assert.equal(fake.isReading, true);
});

test("requests that wait on a connection that ended do not start", async () => {
  const pipelined = new PipelinedRequests();
  const { fake, socket } = createSocket();
  pipelined.wait(socket, () => assert.fail("it started"));
  fake.destroyed = true;
  await turn();
  await turn();
});
