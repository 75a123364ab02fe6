import assert from "node:assert/strict";
import { test } from "node:test";
import { CallAdmission } from "../../src/nodes/callAdmission.ts";

const PLACES = 10;
const MAX_WAIT_MS = 1_000;
const DEADLINE_MS = 30_000;

/** A node that has one HTTP request for each call, up to its places. */
const create = () => {
  const time = { nowMs: 0 };
  let calls = 0;
  const load = {
    get isFull() {
      return calls >= PLACES;
    },
    get inFlight() {
      return Math.min(calls, PLACES);
    },
  };
  const admission = new CallAdmission(load, { requests: PLACES }, MAX_WAIT_MS, () => time.nowMs);
  const begin = (count: number, clientId = "one") => {
    for (let begun = 0; begun < count; begun++) {
      calls++;
      admission.begin(clientId);
    }
  };
  const end = (count: number, isAnswered = true) => {
    for (let ended = 0; ended < count; ended++) {
      calls--;
      admission.end("one", isAnswered);
    }
  };
  const isRefused = (clientId = "one", remainingMs = DEADLINE_MS) => admission.isRefused(clientId, remainingMs);
  return { time, admission, begin, end, isRefused };
};

test("a burst is admitted whole, and later only the calls that the node answers in the longest wait", () => {
  const { time, begin, end, isRefused } = create();
  begin(300);
  assert.equal(isRefused(), false);
  for (; time.nowMs < 1_900; time.nowMs += 100) {
    end(10);
    begin(10);
  }
  assert.equal(isRefused(), true, "290 calls wait, and 100 are answered in a second");
  end(200);
  assert.equal(isRefused(), false, "90 calls wait");
});

test("no call is refused while the node answers each in time, however slow it is", () => {
  for (const latencyMs of [300, 750, 1_500, 8_000]) {
    const { time, begin, end, isRefused } = create();
    for (; time.nowMs < 60_000; time.nowMs += latencyMs) {
      end(time.nowMs === 0 ? 0 : PLACES);
      begin(PLACES);
      assert.equal(isRefused(), false, `${latencyMs} ms`);
    }
  }
});

test("a first wave that is not answered yet is no overload", () => {
  const { time, begin, isRefused } = create();
  begin(500);
  time.nowMs = MAX_WAIT_MS - 1;
  assert.equal(isRefused(), false);
  time.nowMs = 1.1 * MAX_WAIT_MS;
  assert.equal(isRefused(), true, "the node answered nothing within the longest wait");
});

test("a new burst is admitted after the node had free places", () => {
  const { time, begin, end, isRefused } = create();
  begin(500);
  time.nowMs = 5_000;
  assert.equal(isRefused(), true);
  end(496);
  assert.equal(isRefused(), false);
  begin(500);
  assert.equal(isRefused(), false);
});

test("a call whose deadline is nearer than its turn is refused", () => {
  const { time, begin, end, isRefused } = create();
  begin(100);
  time.nowMs = 500;
  end(50);
  begin(40);
  assert.equal(isRefused(), false, "80 calls wait, and 120 a second can be answered");
  assert.equal(isRefused("one", 400), true);
});

test("a refusal, a broken connection and a deadline are no answers", () => {
  const { time, begin, end, isRefused } = create();
  begin(100);
  for (; time.nowMs < 3_000; time.nowMs += 100) {
    end(10, false);
    begin(10);
  }
  assert.equal(isRefused(), true);
});

test("a client without calls is admitted while another one has them all", () => {
  const { time, begin, isRefused } = create();
  begin(500, "greedy");
  begin(1, "other");
  time.nowMs = 2_000;
  assert.equal(isRefused("greedy"), true);
  assert.equal(isRefused("new"), false);
});

test("calls that wait for the budget of the node wait for the node", () => {
  const { time, admission, begin, end, isRefused } = create();
  for (let call = 0; call < 50; call++) {
    admission.beginDelay("one");
  }
  for (; time.nowMs < 2_000; time.nowMs += 200) {
    begin(1);
    end(1);
  }
  assert.equal(isRefused(), true, "50 calls wait, and 5 are answered in a second");
  for (let call = 0; call < 50; call++) {
    admission.endDelay("one");
  }
  assert.equal(isRefused(), false);
});
