import assert from "node:assert/strict";
import { test } from "node:test";
import { createBreaker } from "../../src/nodes/breaker.ts";

test("it opens after failures in a row, lets one probe through after a while, and closes when that goes well", () => {
  let nowMs = 0;
  const changes: boolean[] = [];
  const breaker = createBreaker({
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
  assert.equal(breaker.available, false, "an answer that was on its way says nothing");
  nowMs = 100;
  assert.equal(breaker.available, true);
  breaker.begin();
  assert.equal(breaker.available, false, "one probe at a time");
  breaker.failed();
  assert.equal(breaker.available, false);
  nowMs = 200;
  breaker.begin();
  breaker.release();
  assert.equal(breaker.available, true, "a probe whose caller left decided nothing");
  breaker.begin();
  breaker.succeeded();
  assert.equal(breaker.available, true);
  assert.deepEqual(changes, [true, false]);
});
