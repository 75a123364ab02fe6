import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Breaker, type Confirmation } from "../../src/nodes/nodeFailures.ts";

test("a breaker opens after consecutive failures, then permits one probe, and closes if the probe succeeds", () => {
  let nowMs = 0;
  const changes: boolean[] = [];
  const breaker = new Breaker({
    failures: 3,
    openMs: 100,
    nowMs: () => nowMs,
    onChange: (open) => changes.push(open),
  });
  const fail = () => {
    breaker.begin();
    breaker.failed();
  };
  fail();
  fail();
  breaker.succeeded();
  fail();
  fail();
  assert.equal(breaker.available, true);
  fail();
  assert.equal(breaker.available, false);
  breaker.succeeded();
  assert.equal(breaker.available, false, "a response that was in flight does not close it");
  nowMs = 100;
  assert.equal(breaker.available, true);
  breaker.begin();
  assert.equal(breaker.available, false, "only one probe is in flight");
  breaker.failed();
  assert.equal(breaker.available, false);
  nowMs = 200;
  breaker.begin();
  breaker.release();
  assert.equal(breaker.available, true, "a probe that its client cancelled has no outcome");
  breaker.begin();
  breaker.succeeded();
  assert.equal(breaker.available, true);
  assert.deepEqual(changes, [true, false]);
});

test("a breaker that asks first opens only if a call of forebay's own failed too, and asks once at a time", async () => {
  const asked: ((confirmation: Confirmation) => void)[] = [];
  const confirm = () => new Promise<Confirmation>((resolve) => asked.push(resolve));
  const breaker = new Breaker({ failures: 2, openMs: 100, nowMs: () => 0, confirm });
  const fail = () => {
    breaker.begin();
    breaker.failed();
  };
  const answer = async (confirmation: Confirmation) => {
    asked.at(-1)?.(confirmation);
    await nextTurn();
  };
  fail();
  assert.equal(asked.length, 0);
  fail();
  fail();
  assert.equal(asked.length, 1);
  assert.equal(breaker.available, true);
  await answer("contradicted");
  assert.equal(breaker.available, true);
  fail();
  assert.equal(asked.length, 1, "it counts anew");
  fail();
  await answer("notAsked");
  assert.equal(breaker.available, true);
  fail();
  assert.equal(asked.length, 3, "the next failure asks again");
  await answer("confirmed");
  assert.equal(breaker.available, false);
});
