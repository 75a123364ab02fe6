import assert from "node:assert/strict";
import { test } from "node:test";
import { RETRY_LIMITS } from "../../src/core/retryPolicy.ts";
import { HangWatch } from "../../src/nodes/hangWatch.ts";
import { createFakeClock } from "../support/fakes/fakeClock.ts";

const { quietMs, answerMs, reprobeMs } = RETRY_LIMITS.hang;

/** A watch with a fake clock. A probe without a response takes `answerMs`. */
const start = ({ hasOther = true } = {}) => {
  const clock = createFakeClock();
  const rig = { isAlive: false, hasOther, probes: 0, changes: [] as boolean[], ended: [] as string[] };
  const send = async () => {
    rig.probes += 1;
    if (!rig.isAlive) {
      await clock.sleep(answerMs, new AbortController().signal);
    }
    return rig.isAlive;
  };
  const node = { hasOther: () => rig.hasOther, onHang: (isHung: boolean) => rig.changes.push(isHung) };
  const watch = new HangWatch(node, { send }, clock);
  const begin = (name: string, isAwaited = false) => {
    const request = {
      isAwaited,
      onHang: () => {
        rig.ended.push(name);
        watch.end(request);
      },
    };
    watch.begin(request);
    return request;
  };
  return { clock, watch, begin, rig };
};

test("reads of a node that hangs end after the quiet time and a probe, and writes do not", async () => {
  const { clock, watch, begin, rig } = start();
  begin("read");
  begin("write", true);
  await clock.advance(quietMs + answerMs - 1);
  assert.deepEqual([rig.probes, watch.isHung, rig.ended], [1, false, []]);
  await clock.advance(1);
  assert.deepEqual([rig.probes, watch.isHung, rig.ended], [1, true, ["read"]]);
});

test("a byte of any response delays the probe", async () => {
  const { clock, watch, begin, rig } = start();
  begin("read");
  for (let at = 0; at < 5; at += 1) {
    await clock.advance(quietMs - 1);
    watch.recordBytes();
  }
  assert.equal(rig.probes, 0);
  await clock.advance(quietMs);
  assert.equal(rig.probes, 1);
});

test("a node that responds to each probe keeps its slow read", async () => {
  const { clock, watch, begin, rig } = start();
  rig.isAlive = true;
  begin("trace");
  await clock.advance(quietMs * 20);
  assert.deepEqual([rig.probes, watch.isHung, rig.ended], [20, false, []]);
});

test("a byte during the probe shows that the node does not hang", async () => {
  const { clock, watch, begin, rig } = start();
  begin("read");
  await clock.advance(quietMs + 1);
  watch.recordBytes();
  await clock.advance(answerMs);
  assert.deepEqual([rig.probes, watch.isHung, rig.ended], [1, false, []]);
});

test("a node that hangs is probed until it responds, also without requests", async () => {
  const { clock, watch, begin, rig } = start();
  begin("read");
  await clock.advance(quietMs + answerMs);
  begin("later");
  await clock.advance(reprobeMs + answerMs);
  assert.deepEqual([rig.probes, rig.ended], [2, ["read", "later"]]);
  rig.isAlive = true;
  await clock.advance(reprobeMs);
  assert.deepEqual([watch.isHung, rig.changes], [false, [true, false]]);
  await clock.advance(reprobeMs * 10);
  assert.equal(rig.probes, 3);
});

test("reads wait for a node that hangs while no other node can answer", async () => {
  const { clock, begin, rig } = start({ hasOther: false });
  begin("read");
  await clock.advance(quietMs + answerMs);
  assert.deepEqual([rig.changes, rig.ended], [[true], []]);
  rig.hasOther = true;
  await clock.advance(reprobeMs + answerMs);
  assert.deepEqual(rig.ended, ["read"]);
});

test("an idle node is not probed", async () => {
  const { clock, watch, begin, rig } = start();
  watch.end(begin("read"));
  await clock.advance(quietMs * 3);
  watch.end(begin("read"));
  await clock.advance(quietMs * 3);
  assert.equal(rig.probes, 0);
});
