import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { MessageTurns } from "../../src/websocket/messageFlow.ts";

/** Uses the CPU, as the handling of a large message does. */
const spin = (ms: number): void => {
  const endMs = performance.now() + ms;
  while (performance.now() < endMs) {
    // Time passes.
  }
};

test("messages that find no time in this turn wait, in turn with those of other connections and in order", async () => {
  const turns = new MessageTurns();
  const [one, other] = [{}, {}];
  const handled: string[] = [];
  const handle = (name: string) => () => {
    handled.push(name);
    spin(10);
  };
  for (const name of ["a1", "a2", "a3", "a4"]) {
    turns.run(one, handle(name));
  }
  turns.run(other, handle("b1"));
  assert.deepEqual(handled, ["a1"]);
  const before: number[] = [];
  while (handled.length < 5) {
    before.push(handled.length);
    await nextTurn();
  }
  assert.deepEqual(handled, ["a1", "a2", "b1", "a3", "a4"]);
  assert.ok(before.length >= 4, `${before}`);
  await nextTurn();
  turns.run(other, handle("b2"));
  assert.equal(handled.at(-1), "b2");
});

test("at most 128 messages are handled in one turn, because their responses follow in it", async () => {
  const turns = new MessageTurns();
  let handled = 0;
  for (let message = 0; message < 300; message++) {
    turns.run({}, () => {
      handled++;
    });
  }
  assert.ok(handled <= 128, `${handled}`);
  const inTurns: number[] = [];
  while (handled < 300) {
    const before = handled;
    await nextTurn();
    inTurns.push(handled - before);
  }
  assert.ok(Math.max(...inTurns) <= 128, `${inTurns}`);
});
