import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { BackOff, type Confirmation } from "../../src/nodes/backOff.ts";

test("a back-off begins after failures in a row, then permits one trial, and ends if the trial succeeds", () => {
  let nowMs = 0;
  const changes: boolean[] = [];
  const backOff = new BackOff({
    failures: 3,
    openMs: 100,
    nowMs: () => nowMs,
    onChange: (open) => changes.push(open),
  });
  const fail = () => {
    backOff.begin();
    backOff.failed();
  };
  fail();
  fail();
  backOff.succeeded();
  fail();
  fail();
  assert.equal(backOff.available, true);
  fail();
  assert.equal(backOff.available, false);
  backOff.succeeded();
  assert.equal(backOff.available, false, "a response that was in flight does not close it");
  nowMs = 100;
  assert.equal(backOff.available, true);
  backOff.begin();
  assert.equal(backOff.available, false, "only one probe is in flight");
  backOff.failed();
  assert.equal(backOff.available, false);
  nowMs = 200;
  backOff.begin();
  backOff.release();
  assert.equal(backOff.available, true, "a probe that its client cancelled has no outcome");
  backOff.begin();
  backOff.succeeded();
  assert.equal(backOff.available, true);
  assert.deepEqual(changes, [true, false]);
});

test("a back-off that asks first begins only if a call of forebay's own failed too, and asks once at a time", async () => {
  const asked: ((confirmation: Confirmation) => void)[] = [];
  const confirm = () => new Promise<Confirmation>((resolve) => asked.push(resolve));
  const backOff = new BackOff({ failures: 2, openMs: 100, nowMs: () => 0, confirm });
  const fail = () => {
    backOff.begin();
    backOff.failed();
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
  assert.equal(backOff.available, true);
  await answer("contradicted");
  assert.equal(backOff.available, true);
  fail();
  assert.equal(asked.length, 1, "it counts anew");
  fail();
  await answer("notAsked");
  assert.equal(backOff.available, true);
  fail();
  assert.equal(asked.length, 3, "the next failure asks again");
  await answer("confirmed");
  assert.equal(backOff.available, false);
});

test("a back-off doubles with each trial that fails, and lasts as long as the node says", () => {
  let nowMs = 0;
  const backOff = new BackOff({ failures: 1, openMs: 1_000, maxOpenMs: 4_000, nowMs: () => nowMs });
  const waits = Array.from({ length: 4 }, () => {
    nowMs += backOff.retryInMs;
    backOff.begin();
    backOff.failed();
    return backOff.retryInMs;
  });
  assert.deepEqual(waits, [1_000, 2_000, 4_000, 4_000]);
  backOff.failed({ forMs: 60_000 });
  assert.equal(backOff.retryInMs, 60_000);
  nowMs += 60_000;
  backOff.succeeded();
  backOff.failed();
  assert.equal(backOff.retryInMs, 1_000);
});

test("a request that began before the last failure shows nothing, and a later one ends the back-off at any time", () => {
  let nowMs = 10;
  const backOff = new BackOff({ failures: 2, openMs: 1_000, nowMs: () => nowMs });
  backOff.failed({ startMs: 5 });
  backOff.failed({ startMs: 6 });
  assert.equal(backOff.isOpen, false, "both began before the first one failed");
  nowMs = 20;
  backOff.failed({ startMs: 15 });
  assert.equal(backOff.isOpen, true);
  backOff.succeeded(15);
  assert.equal(backOff.isOpen, true);
  backOff.succeeded(25);
  assert.equal(backOff.isOpen, false);
});
