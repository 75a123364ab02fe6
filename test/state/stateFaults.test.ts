import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTick } from "node:timers/promises";
import type { BlockId } from "../../src/core/heads.ts";
import { Audit } from "../../src/state/audit.ts";
import { StateFollower } from "../../src/state/stateFollower.ts";
import type { StateKey } from "../../src/state/stateKey.ts";
import { StateLearner } from "../../src/state/stateLearner.ts";
import { ValueStore } from "../../src/state/store/valueStore.ts";
import type { WriteSet, WriteSetSource } from "../../src/state/writeSet.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { hashOf } from "../support/builders/heads.ts";
import { addressOf } from "../support/builders/stateModel.ts";
import { createFakeHeads } from "../support/fakes/fakeHeads.ts";
import { createCost, createGuard, everySource } from "./costRig.ts";
import { emptyWriteSet, FakeWriteSets } from "./fakeWriteSets.ts";

const FIRST = 1_000n;
const ONE = "1".padStart(64, "0");
const BALANCE: StateKey = { address: addressOf(0), field: "balance", slot: undefined };
const block = (number: bigint): BlockId => ({ number, hash: hashOf(number) });

/** A source that throws for each block. */
const throwing: WriteSetSource = {
  kind: "feed",
  unitsPerBlock: 0,
  read: () => {
    throw new RangeError("the source failed");
  },
};

/** Follows a chain whose blocks have these write sets. */
const createRig = (onApplied = (): void => undefined) => {
  const heads = createFakeHeads(FIRST);
  heads.move(block(FIRST));
  const source = new FakeWriteSets("trace");
  const values = new ValueStore(1_000_000);
  const events: string[] = [];
  const outcomes: string[] = [];
  const { log, metrics } = createTelemetry({ level: "silent" });
  Object.assign(log, {
    warn: ({ err, source: kind }: { readonly err: unknown; readonly source: string }) => events.push(`${kind} ${err}`),
    error: ({ err }: { readonly err: unknown }, text: string) =>
      events.push(`${err}${text.includes("any more") ? ", the last one" : ""}`),
  });
  Object.assign(metrics.stateWriteSetSeconds, { observe: onApplied });
  Object.assign(metrics.stateFollowing, {
    set: (_: object, isFollowing: number) => events.push(...(isFollowing === 1 ? [] : ["not following"])),
  });
  const follower = new StateFollower({
    ...{ heads, values, sources: [throwing, source], cost: everySource, guard: createGuard() },
    ...{ chain: "chain", telemetry: { log, metrics } },
    hasSameRules: () => true,
    onRead: (kind, outcome) => outcomes.push(`${kind} ${outcome}`),
    onDifference: () => undefined,
    onApplied: () => undefined,
    onDropped: (reason) => events.push(reason),
  });
  let number = FIRST;
  const extend = async (writeSetOf: (block: BlockId) => WriteSet): Promise<BlockId> => {
    number++;
    const next = block(number);
    heads.move(next);
    const settled = follower.untilApplied(next);
    source.answer(next, writeSetOf(next));
    await settled;
    await nextTick();
    return next;
  };
  const enter = (at: BlockId) => follower.beginRead()({ values: [[BALANCE, ONE]] }, at);
  return { follower, values, events, outcomes, extend, enter };
};

const malformed = ({ number, hash }: BlockId): WriteSet => ({
  block: { number, hash },
  grade: "checked",
  // One account, of which nothing follows.
  packed: Uint8Array.of(1, 0, 0, 0),
});

test("a source that throws has the outcome error, and the next source is asked", async () => {
  const { values, events, outcomes, extend, enter } = createRig();
  enter(block(FIRST));
  const next = await extend(emptyWriteSet);
  assert.equal(values.get(BALANCE, next), ONE);
  assert.deepEqual(events, ["feed RangeError: the source failed"]);
  assert.deepEqual(outcomes, ["feed error", "trace read"]);
});

test("a write set that cannot be applied drops all values, and the next block is followed", async () => {
  const { follower, values, events, extend, enter } = createRig();
  enter(block(FIRST));
  const failed = await extend(malformed);
  assert.match(events.join(), /RangeError: .*,fault$/);
  assert.equal(values.get(BALANCE, failed), undefined);
  assert.equal(follower.isFollowing, true);
  enter(failed);
  const next = await extend(emptyWriteSet);
  assert.equal(values.get(BALANCE, next), ONE);
});

test("a listener that throws drops all values", async () => {
  const { follower, values, events, extend, enter } = createRig(() => {
    throw new Error("the listener failed");
  });
  enter(block(FIRST));
  const next = await extend(emptyWriteSet);
  assert.deepEqual(events.slice(1), ["Error: the listener failed", "fault"]);
  assert.equal(values.get(BALANCE, next), undefined);
  assert.equal(follower.isFollowing, true);
});

test("three faults end the following", async () => {
  const { follower, values, events, extend, enter } = createRig();
  await extend(malformed);
  await extend(malformed);
  assert.equal(follower.isFollowing, true);
  await extend(malformed);
  assert.match(events.join(), /the last one,fault,not following$/);
  assert.equal(follower.isFollowing, false);
  const next = await extend(emptyWriteSet);
  enter(next);
  assert.equal(values.head, undefined);
  assert.equal(values.get(BALANCE, next), undefined);
});

test("a check and learning that fail are logged", async (t) => {
  const telemetry = createTelemetry({ level: "silent" });
  const error = t.mock.method(telemetry.log, "error", () => undefined);
  const { follower, values } = createRig();
  const shared = { chain: "chain", values, cost: createCost().cost, telemetry };
  const recordWrongValue = () => undefined;
  const audit = new Audit({ ...shared, follower, guard: createGuard(), nodes: () => [], recordWrongValue });
  const loader = { unitsForValues: () => 0, loadValues: async () => undefined };
  const learner = new StateLearner({ ...shared, follower, loader, nowMs: () => 0 });
  t.mock.getter(values, "head", () => {
    throw new RangeError("the table failed");
  });
  await audit.check();
  learner.onDropped();
  await nextTick();
  await nextTick();
  assert.equal(error.mock.callCount(), 2);
});
