import assert from "node:assert/strict";
import { test } from "node:test";
import type { BlockId } from "../../src/core/heads.ts";
import type { WriteSet } from "../../src/state/writeSet.ts";
import { createTrust } from "./costRig.ts";
import { emptyWriteSet, FakeWriteSets } from "./fakeWriteSets.ts";
import { BALANCE, block, createFollower, FIRST, ONE } from "./followerRig.ts";

const NODE = "node";
const traceOf = (at: BlockId): WriteSet => ({ ...emptyWriteSet(at), node: NODE });

/** A feed, and a trace on probation that one agreement ends. */
const createMixedRig = () => {
  const clock = { nowMs: 0 };
  const [feed, trace] = [new FakeWriteSets("feed"), new FakeWriteSets("trace")];
  const trust = createTrust({ nowMs: () => clock.nowMs, probation: { blocks: 1, values: 1 }, nodes: [NODE] });
  const { heads, values, follower, dropped, enter } = createFollower([feed, trace], { trust });
  let number = FIRST;
  /** Publishes a block whose write set only this source has. */
  const extend = async (source: FakeWriteSets): Promise<void> => {
    number++;
    feed.answer(block(number), source === feed ? emptyWriteSet(block(number)) : "incomplete");
    trace.answer(block(number), source === trace ? traceOf(block(number)) : "late");
    heads.move(block(number));
    await follower.untilApplied(block(number));
  };
  const known = () => values.get(BALANCE, block(number));
  return { feed, trace, clock, dropped, extend, enter: () => enter(block(number)), known };
};

test("values that a source on probation carried are known after they agreed", async () => {
  const { trace, dropped, extend, enter, known } = createMixedRig();
  enter();
  await extend(trace);
  assert.equal(known(), undefined);
  enter();
  assert.equal(known(), ONE);
  await extend(trace);
  assert.equal(known(), ONE);
  assert.deepEqual(dropped, []);
});

test("a source on probation is not asked while another one has the write sets", async () => {
  const { feed, trace, clock, dropped, extend, enter, known } = createMixedRig();
  enter();
  await extend(feed);
  assert.equal(known(), ONE);
  for (let count = 0; count < 8; count++) {
    clock.nowMs += 2_000;
    await extend(trace);
  }
  assert.equal(trace.reads, 0);
  assert.deepEqual(dropped, Array(8).fill("noWriteSet"));
  enter();
  await extend(trace);
  assert.equal(trace.reads, 1);
  assert.equal(known(), undefined);
});

test("on fast blocks, a source on probation waits for 16 s without another one", async () => {
  const { feed, trace, clock, extend } = createMixedRig();
  await extend(feed);
  for (let count = 0; count < 79; count++) {
    clock.nowMs += 200;
    await extend(trace);
  }
  assert.equal(trace.reads, 0);
  clock.nowMs += 200;
  await extend(trace);
  assert.equal(trace.reads, 1);
});

test("values that a source on probation carried end when another source has a write set", async () => {
  const { feed, trace, dropped, extend, enter, known } = createMixedRig();
  enter();
  await extend(trace);
  await extend(feed);
  assert.deepEqual(dropped, ["probation"]);
  enter();
  assert.equal(known(), ONE);
  await extend(feed);
  assert.equal(known(), ONE);
});

test("values that a source carried stay known if its probation ends by time, between two blocks", async () => {
  const clock = { nowMs: 0 };
  const trust = createTrust({ nowMs: () => clock.nowMs, probation: { blocks: 32, values: 1 }, nodes: [NODE] });
  const trace = new FakeWriteSets("trace");
  const { heads, values, follower, dropped, enter } = createFollower([trace], { trust });
  let number = FIRST;
  const extend = async (): Promise<void> => {
    number++;
    trace.answer(block(number), traceOf(block(number)));
    heads.move(block(number));
    await follower.untilApplied(block(number));
  };
  enter(block(number));
  while (!trust.evidenceOf(NODE).isTrusted) {
    await extend();
    // A client reads after each head.
    enter(block(number));
    clock.nowMs += 4_000;
  }
  await extend();
  assert.deepEqual(dropped, []);
  assert.equal(values.get(BALANCE, block(number)), ONE);
});
