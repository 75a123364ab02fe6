import assert from "node:assert/strict";
import { test } from "node:test";
import { SourceGuard } from "../../../src/state/sources/sourceGuard.ts";
import { packWrites } from "../../../src/state/store/packedWrites.ts";
import type { WriteSet, WriteSetFailure, WriteSetSource, WriteSetSourceKind } from "../../../src/state/writeSet.ts";
import { createCost } from "../costRig.ts";

const BLOCK = { number: 1n, hash: `0x${"11".repeat(32)}` } as const;
const HOUR_MS = 3_600_000;
const { cost, spent } = createCost();
const { signal } = new AbortController();

const sourceOf = (kind: WriteSetSourceKind, has: () => boolean): WriteSetSource => ({
  kind,
  unitsPerBlock: 20,
  read: async (block) => (has() ? { block, grade: "checked", packed: packWrites(new Map()) } : "late"),
});

test("each write set that was asked of a node is billed", async () => {
  const outcomes: (WriteSet | WriteSetFailure)[] = [
    "late",
    "unsupported",
    { block: BLOCK, grade: "checked", packed: packWrites(new Map()) },
  ];
  const guard = new SourceGuard({ cost, nowMs: () => 0 });
  const source = guard.guard({ kind: "trace", unitsPerBlock: 60, read: async () => outcomes.shift() ?? "error" });
  assert.deepEqual([source.kind, source.unitsPerBlock], ["trace", 60]);
  const before = spent.length;
  assert.equal(await source.read(BLOCK, signal), "late");
  assert.equal(await source.read(BLOCK, signal), "unsupported");
  assert.equal(((await source.read(BLOCK, signal)) as WriteSet).block, BLOCK);
  assert.deepEqual(spent.slice(before), [
    ["writeSets", 60],
    ["writeSets", 60],
  ]);
});

test("the source of a wrong value is suspended for an hour: a feed, or the traces of a node", async () => {
  const clock = { nowMs: 0 };
  const guard = new SourceGuard({ cost, nowMs: () => clock.nowMs });
  guard.nodes = ["one", "two"];
  const [feed, trace] = (["feed", "trace"] as const).map((kind) => guard.guard(sourceOf(kind, () => true)));
  assert.ok(feed && trace);
  assert.equal(((await feed.read(BLOCK, signal)) as WriteSet).source, "feed");
  guard.suspend({ source: "feed" });
  guard.suspend({ source: "trace", node: "one" });
  assert.deepEqual([feed.isSuspended, trace.isSuspended], [true, false]);
  assert.deepEqual([guard.isSuspended("one"), guard.isSuspended("two")], [true, false]);
  assert.equal(await feed.read(BLOCK, signal), "unsupported");
  guard.suspend({ source: "trace", node: "two" });
  assert.equal(trace.isSuspended, true, "no node is left");
  clock.nowMs = HOUR_MS;
  assert.deepEqual([feed.isSuspended, trace.isSuspended], [false, false]);
});

test("values from nodes may answer once each node passed a check, and again after a wrong value", () => {
  const clock = { nowMs: 0 };
  const guard = new SourceGuard({ cost, nowMs: () => clock.nowMs });
  guard.nodes = ["one", "two"];
  assert.equal(guard.havePassed([]), true);
  guard.pass(["one"]);
  assert.deepEqual([guard.havePassed(["one"]), guard.havePassed(["one", "two"])], [true, false]);
  guard.suspend({ node: "one" });
  guard.pass(["one"]);
  assert.equal(guard.havePassed(["one"]), false, "a check that began before says nothing");
  clock.nowMs = HOUR_MS;
  guard.pass(["one"]);
  assert.equal(guard.havePassed(["one"]), true);
});

test("a paid source that keeps failing rests longer and longer, and a free one is always asked", async () => {
  const clock = { nowMs: 0 };
  let isFailing = true;
  const guard = new SourceGuard({ cost, nowMs: () => clock.nowMs });
  let asked = 0;
  const has = () => {
    asked++;
    return !isFailing;
  };
  const trace = guard.guard(sourceOf("trace", has));
  const feed = guard.guard({ ...sourceOf("feed", () => false), unitsPerBlock: 0 });
  const MINUTES = 60;
  for (; clock.nowMs < MINUTES * 60_000; clock.nowMs += 2_000) {
    await trace.read(BLOCK, signal);
    await feed.read(BLOCK, signal);
  }
  assert.ok(asked < 20, `${asked} of 1,800 blocks were asked`);
  assert.equal(trace.isSuspended, true);
  assert.equal(feed.isSuspended, false);
  isFailing = false;
  clock.nowMs += 600_000;
  assert.notEqual(await trace.read(BLOCK, signal), "unsupported");
  isFailing = true;
  assert.equal(await trace.read(BLOCK, signal), "late");
  assert.equal(trace.isSuspended, false, "a single failure is no reason to rest");
});

test("on fast blocks, a source is suspended after 4 s of failures, for 10 s at first", async () => {
  const clock = { nowMs: 0 };
  const guard = new SourceGuard({ cost, nowMs: () => clock.nowMs });
  const trace = guard.guard(sourceOf("trace", () => false));
  for (; clock.nowMs <= 4_000; clock.nowMs += 200) {
    assert.equal(trace.isSuspended, false, `${clock.nowMs} ms`);
    await trace.read(BLOCK, signal);
  }
  assert.equal(trace.isSuspended, true);
  clock.nowMs = 14_000;
  assert.equal(trace.isSuspended, false);
});

test("a read that a reorganisation ended is not a failure", async () => {
  const guard = new SourceGuard({ cost, nowMs: () => 0 });
  const trace = guard.guard(sourceOf("trace", () => false));
  for (let count = 0; count < 5; count++) {
    await trace.read(BLOCK, AbortSignal.abort());
  }
  assert.equal(trace.isSuspended, false);
});
