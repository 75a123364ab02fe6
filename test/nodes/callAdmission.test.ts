import assert from "node:assert/strict";
import { test } from "node:test";
import { CallAdmission } from "../../src/nodes/callAdmission.ts";

const MIN_CALLS = 10;

const create = () => {
  const time = { nowMs: 0 };
  const admission = new CallAdmission({ minCalls: MIN_CALLS, now: () => time.nowMs });
  /** Returns how many of these calls were admitted. */
  const begin = (count: number, clientId = "one") =>
    Array.from({ length: count }, () => admission.begin(clientId)).filter(Boolean).length;
  const end = (count: number, isAnswered = true) => {
    for (let ended = 0; ended < count; ended++) {
      admission.end("one", isAnswered);
    }
  };
  return { time, begin, end };
};

test("a burst is admitted whole, and after a second only what the node answers in a second", () => {
  const { time, begin, end } = create();
  assert.equal(begin(100), 100);
  time.nowMs = 900;
  end(40);
  assert.equal(begin(10), 10, "it is a burst still");
  time.nowMs = 1_200;
  assert.equal(begin(1), 0, "70 calls, and 40 are answered in a second");
  end(31);
  assert.equal(begin(50), 32, "up to 71 answers of the last second");
});

test("a call that its client gave up is no answer of the node", () => {
  const { time, begin, end } = create();
  begin(100);
  time.nowMs = 900;
  begin(1);
  end(40, false);
  time.nowMs = 2_000;
  assert.equal(begin(1), 0, "61 calls, and none was answered");
});

test("calls below the minimum are never refused, however slow the node is", () => {
  const { time, begin } = create();
  for (; time.nowMs < 60_000; time.nowMs += 6_000) {
    assert.equal(begin(1), 1);
  }
});

test("a client without calls is admitted while another one has them all", () => {
  const { time, begin } = create();
  begin(100, "greedy");
  time.nowMs = 500;
  begin(1, "greedy");
  time.nowMs = 1_600;
  assert.equal(begin(1, "greedy"), 0);
  assert.equal(begin(1, "other"), 1);
});
