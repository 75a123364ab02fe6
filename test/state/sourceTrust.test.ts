import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTick } from "node:timers/promises";
import type { BlockId } from "../../src/core/heads.ts";
import { SourceTrust } from "../../src/state/sourceTrust.ts";
import { packWrites } from "../../src/state/store/packedWrites.ts";
import type { WriteSet, WriteSetFailure, WriteSetSource, WriteSetSourceKind } from "../../src/state/writeSet.ts";
import { blockOf } from "../support/builders/heads.ts";
import { addressOf } from "../support/builders/stateModel.ts";
import { createCost } from "./costRig.ts";

const BLOCK = { number: 1n, hash: `0x${"11".repeat(32)}` } as const;
const HOUR_MS = 3_600_000;
const { cost, spent } = createCost();
const { signal } = new AbortController();

const sourceOf = (kind: WriteSetSourceKind, has: () => boolean): WriteSetSource => ({
  kind,
  unitsPerBlock: 20,
  read: async (block) => (has() ? { block, packed: packWrites(new Map()) } : "late"),
});

test("each write set that was asked of a node is billed", async () => {
  const outcomes: (WriteSet | WriteSetFailure)[] = [
    "late",
    "unsupported",
    { block: BLOCK, packed: packWrites(new Map()) },
  ];
  const trust = new SourceTrust({ cost, nowMs: () => 0, probation: { blocks: 1, values: 1 } });
  const source = trust.guard({ kind: "trace", unitsPerBlock: 60, read: async () => outcomes.shift() ?? "error" });
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

test("the source of the newest write set rests for an hour", async () => {
  const clock = { nowMs: 0 };
  const state = { hasList: false };
  const trust = new SourceTrust({ cost, nowMs: () => clock.nowMs, probation: { blocks: 0, values: 0 } });
  const list = trust.guard(sourceOf("accessList", () => state.hasList));
  const trace = trust.guard(sourceOf("trace", () => true));
  assert.equal(trust.suspendLastUsed(), undefined);
  assert.equal(await list.read(BLOCK, signal), "late");
  await trace.read(BLOCK, signal);
  assert.equal(trust.suspendLastUsed(), "trace");
  assert.equal(await trace.read(BLOCK, signal), "unsupported");
  state.hasList = true;
  assert.notEqual(await list.read(BLOCK, signal), "unsupported");
  clock.nowMs = HOUR_MS;
  assert.notEqual(await trace.read(BLOCK, signal), "unsupported");
});

test("a paid source that keeps failing rests longer and longer, and a free one is always asked", async () => {
  const clock = { nowMs: 0 };
  let isFailing = true;
  const trust = new SourceTrust({ cost, nowMs: () => clock.nowMs, probation: { blocks: 0, values: 0 } });
  let asked = 0;
  const has = () => {
    asked++;
    return !isFailing;
  };
  const trace = trust.guard(sourceOf("trace", has));
  const feed = trust.guard({ ...sourceOf("feed", () => false), unitsPerBlock: 0 });
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

test("on fast blocks, a source is suspended after 5 s of failures, for 10 s at first", async () => {
  const clock = { nowMs: 0 };
  const trust = new SourceTrust({ cost, nowMs: () => clock.nowMs, probation: { blocks: 0, values: 0 } });
  const trace = trust.guard(sourceOf("trace", () => false));
  for (; clock.nowMs <= 5_000; clock.nowMs += 200) {
    assert.equal(trace.isSuspended, false, `${clock.nowMs} ms`);
    await trace.read(BLOCK, signal);
  }
  assert.equal(trace.isSuspended, true);
  clock.nowMs = 15_000;
  assert.equal(trace.isSuspended, false);
});

test("a read that a reorganisation ended is not a failure", async () => {
  const trust = new SourceTrust({ cost, nowMs: () => 0, probation: { blocks: 0, values: 0 } });
  const trace = trust.guard(sourceOf("trace", () => false));
  for (let count = 0; count < 5; count++) {
    await trace.read(BLOCK, AbortSignal.abort());
  }
  assert.equal(trace.isSuspended, false);
});

test("a trace is on probation, again after a wrong value, and other sources are not", async () => {
  const trust = new SourceTrust({ cost, nowMs: () => 0, probation: { blocks: 1, values: 1 }, nodes: ["one"] });
  const [trace, list] = (["trace", "accessList"] as const).map((kind) => trust.guard(sourceOf(kind, () => true)));
  assert.equal(list?.evidence, undefined);
  assert.equal(trace?.evidence?.isTrusted, false);
  const key = { field: "balance", address: `0x${"aa".repeat(20)}`, slot: undefined } as const;
  trace?.evidence?.recordAgreement(key, BLOCK);
  assert.equal(trace?.evidence?.isTrusted, true);
  assert.equal(trust.areTrusted([undefined, "one"]), true);
  trust.suspendNode("one");
  assert.equal(trace?.evidence?.isTrusted, false);
  assert.equal(trust.areTrusted([undefined, "one"]), false);
});

/** A source of traces whose node the test names. */
const createTraces = () => {
  const node = { name: "a" };
  const limits = { cost, nowMs: () => 0, probation: { blocks: 1, values: 1 }, nodes: ["a", "b"] };
  const trust = new SourceTrust(limits);
  const trace = trust.guard({
    kind: "trace",
    unitsPerBlock: 20,
    read: async (block) => ({ block, packed: packWrites(new Map()), node: node.name }),
  });
  const evidenceOf = (name: string) => trust.evidenceOf(name);
  const order = () => trust.order([{ name: "a" }, { name: "b" }]).map(({ name }) => name);
  return { node, trust, trace, evidenceOf, order };
};

const BALANCE = { field: "balance", address: `0x${"aa".repeat(20)}`, slot: undefined } as const;

test("each node earns the trust in its traces by itself, and a trusted one is asked first", () => {
  const { trace, evidenceOf, order } = createTraces();
  assert.deepEqual(order(), ["a", "b"]);
  evidenceOf("b").recordAgreement(BALANCE, BLOCK);
  assert.deepEqual([evidenceOf("a").isTrusted, evidenceOf("b").isTrusted], [false, true]);
  assert.equal(trace.evidence?.isTrusted, true, "the next block is read from the trusted node");
  assert.deepEqual(order(), ["b", "a"]);
});

test("a node whose trace was wrong rests and begins its probation again, and the other one is asked", async () => {
  const { node, trust, trace, evidenceOf, order } = createTraces();
  for (const name of ["a", "b"]) {
    evidenceOf(name).recordAgreement(BALANCE, BLOCK);
  }
  node.name = "b";
  await trace.read(BLOCK, signal);
  assert.equal(trust.suspendLastUsed(), "trace");
  assert.deepEqual(order(), ["a"]);
  assert.deepEqual([evidenceOf("a").isTrusted, evidenceOf("b").isTrusted], [true, false]);
  assert.equal(trace.isSuspended, false);
  trust.suspendNode("a");
  assert.equal(trace.isSuspended, true);
  assert.equal(await trace.read(BLOCK, signal), "unsupported");
});

test("a proven trace needs no evidence, and is evidence for its node", async () => {
  const trust = new SourceTrust({ cost, nowMs: () => 0, probation: { blocks: 3, values: 100 }, nodes: ["one"] });
  const state = { isProven: true };
  const source = trust.guard({
    kind: "trace",
    unitsPerBlock: 20,
    get isProving() {
      return state.isProven;
    },
    read: async (block) => {
      const { isProven } = state;
      return { block, packed: packWrites(new Map()), ...(isProven ? { isProven } : { node: "one" }) };
    },
  });
  const isTrusted = async () => trust.areTrusted([((await source.read(BLOCK, signal)) as WriteSet).node]);
  assert.equal(source.evidence?.isTrusted, undefined);
  assert.equal(await isTrusted(), true);
  state.isProven = false;
  assert.equal(source.evidence?.isTrusted, false);
  assert.equal(await isTrusted(), false);
  for (const number of [1n, 1n, 2n]) {
    trust.evidenceOf("one").recordProof({ ...BLOCK, number });
  }
  assert.equal(await isTrusted(), false);
  trust.evidenceOf("one").recordProof({ ...BLOCK, number: 3n });
  assert.equal(await isTrusted(), true);
});

test("a proven trace that turns out to be wrong rests for an hour, as any source", async () => {
  const clock = { nowMs: 0 };
  const trust = new SourceTrust({ cost, nowMs: () => clock.nowMs, probation: { blocks: 3, values: 100 } });
  const source = trust.guard({
    kind: "trace",
    unitsPerBlock: 20,
    read: async (block) => ({ block, packed: packWrites(new Map()), isProven: true }),
  });
  await source.read(BLOCK, signal);
  assert.equal(trust.suspendLastUsed(), "trace");
  assert.equal(await source.read(BLOCK, signal), "unsupported");
  clock.nowMs = HOUR_MS;
  assert.notEqual(await source.read(BLOCK, signal), "unsupported");
});

const [PEER_BLOCKS, PEER_VALUES, BLOCK_MS] = [3, 6, 2_000];

/** A write set of these balances. */
const writes = (block: BlockId, node: string, balances: readonly (bigint | "unknown")[]): WriteSet => ({
  block,
  node,
  packed: packWrites(new Map(balances.map((balance, index) => [addressOf(index), { balance, slots: new Map() }]))),
});

/** Reads trusted traces of two balances. `answer` is that of a node on probation. */
const createPeers = (answer: (block: BlockId) => WriteSet | WriteSetFailure | Error) => {
  const clock = { nowMs: 0 };
  const limits = { blocks: PEER_BLOCKS, values: PEER_VALUES };
  const trust = new SourceTrust({ cost, nowMs: () => clock.nowMs, probation: limits, nodes: ["trusted", "peer"] });
  trust.evidenceOf("trusted").resume({ ...limits, ageMs: 0 });
  const asked: bigint[] = [];
  const written = { balances: [1n, 2n] as readonly (bigint | "unknown")[] };
  const source = trust.guard({
    kind: "trace",
    unitsPerBlock: 0,
    read: async (block) => writes(block, "trusted", written.balances),
    readFrom: async (_, block) => {
      asked.push(block.number);
      const outcome = answer(block);
      if (outcome instanceof Error) {
        throw outcome;
      }
      return outcome;
    },
  });
  const follow = async (from: number, upTo: number): Promise<void> => {
    for (let number = from; number <= upTo; number++) {
      clock.nowMs = number * BLOCK_MS;
      await source.read(blockOf(number), signal);
      await nextTick();
    }
  };
  return { evidence: trust.evidenceOf("peer"), asked, written, follow };
};

test("a node whose write sets have the trusted values ends its probation, and is asked no more", async () => {
  const { evidence, asked, follow } = createPeers((block) => writes(block, "peer", [1n, 2n, 3n]));
  await follow(1, 2);
  assert.equal(evidence.isTrusted, false);
  await follow(3, 9);
  assert.equal(evidence.isTrusted, true);
  assert.deepEqual(asked, [1n, 2n, 3n]);
});

test("a node with another value, without one, or without an answer earns nothing and pauses", async () => {
  const outcomes: Record<string, (block: BlockId) => WriteSet | WriteSetFailure | Error> = {
    other: (block) => writes(block, "peer", [1n, 3n]),
    missing: (block) => writes(block, "peer", [1n]),
    late: () => "late",
    broken: () => new Error("broken"),
    "of another block": () => writes(blockOf(99), "peer", [1n, 2n]),
  };
  for (const [name, answer] of Object.entries(outcomes)) {
    const { evidence, asked, follow } = createPeers(answer);
    await follow(1, 40);
    assert.deepEqual(asked, [1n, 31n], `${name}: after a minute`);
    assert.deepEqual([evidence.blocksLeft, evidence.valuesLeft], [PEER_BLOCKS, PEER_VALUES], name);
  }
});

test("a block without a written value costs no read of a node on probation", async () => {
  const { asked, written, follow } = createPeers(() => "late");
  for (const balances of [[], ["unknown"]] as const) {
    written.balances = balances;
    await follow(1, 5);
    assert.deepEqual(asked, []);
  }
});
