import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { workerEntry } from "../../../src/app/workerEntry.ts";
import { NodeError } from "../../../src/core/node.ts";
import type { Hash } from "../../../src/ethereum/hex.ts";
import type { Call } from "../../../src/jsonrpc/call.ts";
import { paramsTextOf } from "../../../src/jsonrpc/call.ts";
import type { SourceNode } from "../../../src/state/sources/sourceNodes.ts";
import { TraceSource, type TraceSourceOptions } from "../../../src/state/sources/traceSource.ts";
import { WriteSetThread } from "../../../src/state/sources/writeSetThread.ts";
import { unpackWrites } from "../../../src/state/store/packedWrites.ts";
import { compareTruth } from "../../support/state/stateTruth.ts";
import { callTraceOf, encodeJson, type RecordedTrace, readRecorded } from "./recordedBlocks.ts";

const SIGNAL = new AbortController().signal;
const idOf = ({ block }: RecordedTrace) => ({ number: BigInt(block.number), hash: block.hash });
const refuses = (kind: NodeError["kind"], message = "no") => new NodeError(kind, "one", message, { code: -32_000 });

interface TracerConfig {
  readonly diffMode: boolean;
  readonly disableCode?: boolean;
}

/** A node that answers with recorded traces. `fault` replaces an answer. */
const createTraceNode = (
  name: string,
  recorded: readonly RecordedTrace[],
  fault?: () => unknown,
  callFault?: () => unknown,
) => {
  const callsAsked: Hash[] = [];
  const asked: TracerConfig[] = [];
  const limits: (number | undefined)[] = [];
  let arrived = Promise.withResolvers<void>();
  const node: SourceNode = {
    name,
    send: async (call: Call, { maxBytes }) => {
      const [hash, { tracer, tracerConfig }] = JSON.parse(Buffer.from(paramsTextOf(call)).toString());
      const found = recorded.find(({ block }) => block.hash === hash);
      if (tracer === "callTracer") {
        callsAsked.push(hash);
        const calls = callFault?.() ?? (found && callTraceOf(found));
        if (calls instanceof Error) {
          throw calls;
        }
        return encodeJson(calls ?? null);
      }
      asked.push(tracerConfig);
      limits.push(maxBytes);
      arrived.resolve();
      arrived = Promise.withResolvers();
      const outcome = fault?.();
      if (outcome instanceof Error) {
        throw outcome;
      }
      return encodeJson(outcome ?? (tracerConfig.disableCode ? found?.traceWithoutCode : found?.trace) ?? null);
    },
  };
  return { node, asked, callsAsked, limits, next: () => arrived.promise };
};

const createSource = (
  t: TestContext,
  nodes: readonly SourceNode[],
  blocks: readonly RecordedTrace[],
  options: Partial<TraceSourceOptions> = {},
) => {
  const failures: Error[] = [];
  const thread = new WriteSetThread({ entry: workerEntry("writeSets"), onFailure: (error) => failures.push(error) });
  t.after(async () => {
    await thread.close();
    assert.deepEqual(failures, []);
  });
  return new TraceSource({
    thread,
    nodesFor: () => nodes,
    blockTimeMs: () => 20_000,
    isAllowed: () => true,
    readBlock: async ({ hash }) => encodeJson(blocks.find(({ block }) => block.hash === hash)?.block),
    systemContracts: () => [],
    blobs: () => undefined,
    unitsOf: (method) => (method.startsWith("debug_") ? 40 : 20),
    ...options,
  });
};

test("a write set is composed from a node's trace in a thread", async (t) => {
  const recorded = readRecorded("withdrawalsGeth");
  const { node, limits } = createTraceNode("one", [recorded]);
  const source = createSource(t, [node], [recorded]);
  const writeSet = await source.read(idOf(recorded), SIGNAL);
  assert.ok(typeof writeSet !== "string", String(writeSet));
  assert.deepEqual(writeSet.block, idOf(recorded));
  const { wrong, missed } = compareTruth(unpackWrites(writeSet.packed), recorded.before, recorded.after);
  assert.deepEqual({ wrong, missed }, { wrong: [], missed: [] });
  assert.deepEqual(limits, [16 * 1024 * 1024]);
  assert.equal(source.unitsPerBlock, 60);
});

test("the thread starts before the node is asked", async (t) => {
  const recorded = readRecorded("withdrawalsGeth");
  const events: string[] = [];
  const { node } = createTraceNode("one", [recorded], () => {
    events.push("node");
    return refuses("other");
  });
  const thread = { start: () => events.push("start"), run: () => Promise.reject(new Error("there is no trace")) };
  await createSource(t, [node], [recorded], { thread }).read(idOf(recorded), SIGNAL);
  assert.deepEqual(events, ["start", "node"]);
});

test("a node that returned a trace before is asked again after one without diffs", async (t) => {
  const recorded = readRecorded("clearedSlotsGeth");
  let hasDiffs = true;
  const withoutDiffs = [{ txHash: `0x${"11".repeat(32)}`, result: {} }];
  const { node } = createTraceNode("one", [recorded], () => (hasDiffs ? undefined : withoutDiffs));
  const source = createSource(t, [node], [recorded]);
  assert.equal(typeof (await source.read(idOf(recorded), SIGNAL)), "object");
  hasDiffs = false;
  assert.equal(await source.read(idOf(recorded), SIGNAL), "incomplete");
  hasDiffs = true;
  assert.equal(typeof (await source.read(idOf(recorded), SIGNAL)), "object");
});

test("a chain whose rules are not known has no traces", async (t) => {
  const recorded = readRecorded("withdrawalsGeth");
  const { node, asked } = createTraceNode("one", [recorded]);
  const source = createSource(t, [node], [recorded], { isAllowed: () => false });
  assert.equal(await source.read(idOf(recorded), SIGNAL), "unsupported");
  assert.deepEqual(asked, []);
});

test("a node without the method, the tracer or the diff mode is not asked again, and another one is", async (t) => {
  const recorded = readRecorded("clearedSlotsGeth");
  const faults = {
    method: () => refuses("unsupportedMethod"),
    namespace: () => refuses("unauthorized"),
    tracer: () => refuses("other", "tracer not found"),
    script: () => refuses("other", "ReferenceError: prestateTracer is not defined"),
    diffMode: () => [{ txHash: `0x${"11".repeat(32)}`, result: {} }],
  };
  for (const [name, fault] of Object.entries(faults)) {
    const first = createTraceNode("one", [recorded], fault);
    const second = createTraceNode("two", [recorded]);
    const source = createSource(t, [first.node, second.node], [recorded]);
    assert.equal(typeof (await source.read(idOf(recorded), SIGNAL)), "object", name);
    assert.equal(typeof (await source.read(idOf(recorded), SIGNAL)), "object", name);
    assert.deepEqual([first.asked.length, second.asked.length], [1, 2], name);
    const alone = createSource(t, [first.node], [recorded]);
    assert.equal(await alone.read(idOf(recorded), SIGNAL), "unsupported", name);
  }
});

test("an error that shows nothing about support is a failure of its block only", async (t) => {
  const recorded = readRecorded("clearedSlotsGeth");
  const errors = [refuses("unreachable"), refuses("timeout"), refuses("tooLarge"), undefined];
  const { node, asked } = createTraceNode("one", [recorded], () => errors.shift());
  const source = createSource(t, [node], [recorded]);
  const outcomes = [];
  for (let read = 0; read < 4; read++) {
    outcomes.push(await source.read(idOf(recorded), SIGNAL));
  }
  assert.deepEqual(outcomes.slice(0, 3), ["error", "late", "tooLarge"]);
  assert.equal(typeof outcomes[3], "object");
  assert.equal(asked.length, 4);
});

test("a machine of the node that does not have the block yet is asked again", async (t) => {
  const recorded = readRecorded("clearedSlotsGeth");
  const faults: unknown[] = [refuses("missingData"), refuses("missingData")];
  const { node, asked } = createTraceNode("one", [recorded], () => faults.shift());
  const source = createSource(t, [node], [recorded]);
  assert.equal(typeof (await source.read(idOf(recorded), SIGNAL)), "object");
  assert.equal(asked.length, 3);
});

test("a block that cannot be read, or a read that is cancelled, has no write set", async (t) => {
  const recorded = readRecorded("clearedSlotsGeth");
  const { node } = createTraceNode("one", [recorded]);
  const unread = createSource(t, [node], [recorded], { readBlock: () => Promise.reject(new Error("no node")) });
  assert.equal(await unread.read(idOf(recorded), SIGNAL), "error");
  const cancelled = createSource(t, [node], [recorded]);
  assert.equal(await cancelled.read(idOf(recorded), AbortSignal.abort()), "late");
});

test("codes are left out after a node has shown that it gives their hashes", async (t) => {
  const blocks = [readRecorded("clearedSlotsGeth"), readRecorded("newCodeGeth")] as const;
  const { node, asked, next } = createTraceNode("one", blocks);
  const source = createSource(t, [node], blocks);
  const [plain, deploys] = blocks;
  await source.read(idOf(plain), SIGNAL);
  assert.deepEqual(asked, [{ diffMode: true }], "a block without a new code shows nothing");
  const probed = next().then(next);
  await source.read(idOf(deploys), SIGNAL);
  await probed;
  assert.deepEqual(asked.at(-1), { diffMode: true, disableCode: true }, "the same block is asked without codes");
  // The answer to the probe passes the thread before the next read does.
  await source.read(idOf(plain), SIGNAL);
  const writeSet = await source.read(idOf(deploys), SIGNAL);
  assert.deepEqual(asked.at(-1), { diffMode: true, disableCode: true });
  assert.ok(typeof writeSet !== "string");
  const { wrong, missed } = compareTruth(unpackWrites(writeSet.packed), deploys.before, deploys.after);
  assert.deepEqual({ wrong, missed }, { wrong: [], missed: [] });
  assert.ok(
    [...unpackWrites(writeSet.packed).values()].some(
      ({ code, codeHash }) => code === "unknown" && codeHash !== undefined,
    ),
  );
});

test("codes are never left out where a tracer does not give their hashes", async (t) => {
  const deploys = readRecorded("newCodeAnvil");
  const { node, asked } = createTraceNode("one", [deploys]);
  const source = createSource(t, [node], [deploys]);
  for (let read = 0; read < 3; read++) {
    const writeSet = await source.read(idOf(deploys), SIGNAL);
    assert.ok(typeof writeSet !== "string");
    assert.deepEqual(compareTruth(unpackWrites(writeSet.packed), deploys.before, deploys.after).missed, []);
  }
  assert.deepEqual(asked, Array(3).fill({ diffMode: true }));
});

test("the calls of a block are asked only if its diffs may leave out accounts, and raise the units of a block", async (t) => {
  const [plain, hides] = [readRecorded("withdrawalsGeth"), readRecorded("destructionOfNewUndoneGeth")];
  const { node, callsAsked } = createTraceNode("one", [plain, hides]);
  const source = createSource(t, [node], [plain, hides]);
  assert.equal(typeof (await source.read(idOf(plain), SIGNAL)), "object");
  assert.deepEqual([callsAsked, source.unitsPerBlock], [[], 60]);
  const writeSet = await source.read(idOf(hides), SIGNAL);
  assert.ok(typeof writeSet !== "string", String(writeSet));
  const { wrong, missed } = compareTruth(unpackWrites(writeSet.packed), hides.before, hides.after);
  assert.deepEqual({ wrong, missed }, { wrong: [], missed: [] });
  assert.deepEqual(callsAsked, [hides.block.hash]);
  assert.equal(source.unitsPerBlock, 64);
});

test("a block whose accounts no node names has no write set, and a node without call traces is not asked for them again", async (t) => {
  const [plain, hides] = [readRecorded("withdrawalsGeth"), readRecorded("destructionOfNewUndoneGeth")];
  const without = createTraceNode("one", [plain, hides], undefined, () => refuses("other", "tracer not found"));
  const alone = createSource(t, [without.node], [plain, hides]);
  for (let read = 0; read < 3; read++) {
    assert.equal(await alone.read(idOf(hides), SIGNAL), "unlisted");
  }
  assert.equal(without.callsAsked.length, 1);
  assert.equal(typeof (await alone.read(idOf(plain), SIGNAL)), "object", "its diffs are used where they are complete");
  const other = createTraceNode("two", [plain, hides]);
  const both = createSource(t, [without.node, other.node], [plain, hides]);
  assert.equal(typeof (await both.read(idOf(hides), SIGNAL)), "object", "another node names them");
  for (const fault of [() => refuses("timeout"), () => refuses("tooLarge"), () => ({}), () => [null]]) {
    const faulty = createTraceNode("three", [hides], undefined, fault);
    const outcome = await createSource(t, [faulty.node], [hides]).read(idOf(hides), SIGNAL);
    assert.ok(outcome === "unlisted" || outcome === "mismatch", String(outcome));
  }
});
