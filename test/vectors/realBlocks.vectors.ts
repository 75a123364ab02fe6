import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import type { StateChanges } from "../../src/core/stateReader.ts";
import { formatData, formatQuantity, type Hash, parseData } from "../../src/ethereum/hex.ts";
import { rulesAt } from "../../src/ethereum/rules.ts";
import { createEngines } from "../../src/evm/createEngines.ts";
import { mergeChanges } from "../../src/evm/reads/writtenState.ts";
import type { ExecutableMessage, Execution } from "../../src/pending/executableMessage.ts";
import { ExecutorClient } from "../../src/pending/executorClient.ts";
import { decodeTransaction } from "../../src/pending/messageSteps.ts";
import { createMessageRunner } from "../support/builders/messageRunner.ts";
import { createNodeState } from "../support/builders/nodeState.ts";
import { createWorkers } from "../support/servers/evmWorkers.ts";
import { jobsOf, messagesOf, type RealBlocks, readBaseSepolia, readRecordedBuilder } from "./realBlocks.ts";
import { createWitnessNode, type WitnessNodeOptions } from "./witnessNode.ts";

const MAX_BYTES = 64 * 1024 * 1024;

test("a recorded builder: every message verifies, each block's writes give its state root", async () => {
  const real = readRecordedBuilder();
  const { parent } = real;
  const state = createNodeState({ fetch: createWitnessNode(real).fetch, maxBytes: MAX_BYTES });
  const runner = createMessageRunner(
    {
      fetch: (block, keys) => state.at(block).read(keys, AbortSignal.timeout(60_000)),
      engine: await createEngines(),
    },
    { number: BigInt(parent.number), hash: parent.hash },
  );
  const layers = new Map<bigint, StateChanges[]>();
  for (const job of jobsOf(messagesOf(real))) {
    const { number, timestamp } = job.environment;
    const { unverified, changes } = await runner.run(job, rulesAt(real.forks, number, timestamp));
    assert.equal(unverified, undefined, `${number}-${job.index}`);
    assert.ok(changes);
    layers.set(number, [...(layers.get(number) ?? []), changes]);
  }
  for (const [number, written] of layers) {
    const at = real.blocks.findIndex((block) => BigInt(block.number) === number);
    const before = real.states.get(real.blocks[at - 1]?.hash ?? "0x");
    assert.ok(before);
    assert.equal(await before.rootAfter(mergeChanges(written)), real.blocks[at]?.stateRoot);
  }
});

const LATENCY_MS = 20;
const INTERVAL_MS = 200;
/** Each contract's values are found one after the other. */
const MAX_TRIPS_WITHOUT_HINTS = 156;

const createRig = (t: TestContext, real: RealBlocks, options: Pick<WitnessNodeOptions, "latencyMs" | "tracers">) => {
  const { forks, parent, states } = real;
  const before = states.get(parent.hash);
  assert.ok(before);
  /** Another block with the same state. */
  const other = { ...parent, hash: `0x${"0e".repeat(32)}` as Hash };
  const node = createWitnessNode({
    ...real,
    ...options,
    blocks: [...real.blocks, other],
    states: new Map([...states, [other.hash, before]]),
  });
  const state = createNodeState({ fetch: node.fetch, maxBytes: MAX_BYTES });
  const failures: string[] = [];
  const executor = new ExecutorClient({
    workers: createWorkers({ onFailure: (error) => failures.push(error.message) }),
    forks: () => forks,
    nativeContracts: [],
    // The bounds are those of round trips, on any machine: time decides nothing.
    maxSearchMs: Number.POSITIVE_INFINITY,
    stateAt: (block) => state.at(block),
    onRetry: (_, cause) => failures.push(cause),
  });
  // The executor's thread does not keep the process alive.
  const alive = setInterval(() => {}, 1_000);
  t.after(async () => {
    clearInterval(alive);
    await executor.close();
  });
  const rebase = (block: { readonly number: string; readonly hash: Hash }, through?: number) =>
    executor.rebase({ number: BigInt(block.number), hash: block.hash }, through);
  rebase(parent);
  return {
    node,
    executor,
    failures,
    other,
    rebase,
    /** Computes the traces in advance, and waits until the thread has loaded. */
    prepare: async () => {
      const calls = messagesOf(real)
        .flatMap(({ transactions }) => transactions)
        .map((raw) => callOf(parseData(raw), forks.chainId));
      for (const { hash } of [parent, other]) {
        await node.prepare(hash, calls);
      }
      await executor.execute({ ...(jobsOf(messagesOf(real))[0] as ExecutableMessage), id: 1, transactions: [] });
    },
  };
};

const callOf = (raw: Uint8Array, chainId: bigint) => {
  const { prepared } = decodeTransaction(raw, chainId);
  assert.ok(prepared);
  const { to, value, input } = prepared.transaction;
  return {
    from: "sender" in prepared ? prepared.sender : prepared.transaction.from,
    ...(to === null ? {} : { to }),
    value: formatQuantity(value),
    data: formatData(input),
  };
};

const changesOfAll = (executions: readonly Execution[]): StateChanges =>
  mergeChanges(
    executions.map(({ changes, unverified, cause }, index) => {
      assert.ok(changes, `message ${index}: ${unverified} ${cause}`);
      return changes;
    }),
  );

type Rig = ReturnType<typeof createRig>;

/** Sends the messages at their times. Returns the execution of each one and the time of its end after the first message. */
const play = async (rig: Rig, jobs: readonly ExecutableMessage[], intervalMs: number) => {
  const startMs = performance.now();
  return Promise.all(
    jobs.map(async (job, at) => {
      await wait(at * intervalMs);
      const execution = await rig.executor.execute(job);
      return { execution, endedMs: performance.now() - startMs };
    }),
  );
};

/** Round trips of each message, if one message is executed after another. */
const countTrips = async (rig: Rig, jobs: readonly ExecutableMessage[]): Promise<number[]> => {
  const trips: number[] = [];
  for (const job of jobs) {
    const before = rig.node.roundTrips;
    const { unverified, cause } = await rig.executor.execute(job);
    assert.equal(unverified, undefined, String(cause));
    trips.push(rig.node.roundTrips - before);
  }
  return trips;
};

for (const [tracer, maxTrips] of [
  ["debug_traceCall", 13],
  ["eth_createAccessList", 25],
] as const) {
  test(`base sepolia 37312300 with ${tracer}: 11 messages verify with at most ${maxTrips} round trips`, async (t) => {
    const real = readBaseSepolia();
    const rig = createRig(t, real, { latencyMs: LATENCY_MS, tracers: [tracer] });
    await rig.prepare();
    const tripsBefore = rig.node.roundTrips;
    const played = await play(rig, jobsOf(messagesOf(real)), INTERVAL_MS);
    const trips = rig.node.roundTrips - tripsBefore;
    const tookMs = played.map(({ endedMs }, at) => Math.round(endedMs - at * INTERVAL_MS));
    t.diagnostic(`took ${tookMs} ms, ${trips} round trips`);
    assert.ok(trips <= maxTrips, `${trips} round trips`);
    const root = real.states.get(real.parent.hash)?.rootAfter(changesOfAll(played.map(({ execution }) => execution)));
    assert.equal(await root, real.expectedStateRoot);

    // The write set of the next block is unknown, so that all values of the same contracts are read again.
    rig.rebase(rig.other);
    const tripsOfEach = await countTrips(rig, jobsOf(messagesOf(real), 100));
    assert.ok(Math.max(...tripsOfEach) <= 2, `round trips: ${tripsOfEach}`);
    assert.deepEqual(rig.failures, []);
  });
}

test("base sepolia 37312300 without tracer or access lists: it verifies, and the next block is warm", async (t) => {
  const real = readBaseSepolia();
  const rig = createRig(t, real, { latencyMs: LATENCY_MS, tracers: [] });
  await rig.prepare();
  const jobs = jobsOf(messagesOf(real));
  const executions: Execution[] = [];
  // One after another: rounds of messages that overlap are more or fewer, as it happens.
  for (const job of jobs) {
    executions.push(await rig.executor.execute(job));
  }
  const root = real.states.get(real.parent.hash)?.rootAfter(changesOfAll(executions));
  assert.equal(await root, real.expectedStateRoot);
  t.diagnostic(`${rig.node.roundTrips} round trips`);
  assert.ok(rig.node.roundTrips <= MAX_TRIPS_WITHOUT_HINTS, `${rig.node.roundTrips} round trips`);

  const sealed = real.blocks.at(-1);
  const [first] = jobs;
  assert.ok(sealed && first);
  rig.rebase(sealed, jobs.at(-1)?.id);
  const before = rig.node.roundTrips;
  const environment = { ...first.environment, number: first.environment.number + 1n, parentHash: sealed.hash };
  const { unverified } = await rig.executor.execute({ ...first, id: 50, before: jobs.at(-1)?.id, environment });
  // It was executed completely. Only its gas differs, because it is that of another block.
  assert.equal(unverified, "gas");
  assert.equal(rig.node.roundTrips, before);
});

test("base sepolia 37312300 with an access list in each message: two round trips a message", async (t) => {
  const real = readBaseSepolia();
  const tracing = createRig(t, real, { latencyMs: LATENCY_MS, tracers: [] });
  await tracing.prepare();
  // All at once: each message fetches its state while earlier ones wait for theirs.
  const listed = await Promise.all(
    jobsOf(messagesOf(real)).map(async (job): Promise<ExecutableMessage> => {
      const { changes } = await tracing.executor.execute(job);
      assert.ok(changes);
      const accessList = [...changes].map(([address, { slots }]) => ({ address, slots: [...slots.keys()] }));
      return { ...job, accessList };
    }),
  );
  const rig = createRig(t, real, { latencyMs: 0, tracers: ["debug_traceCall"] });
  await rig.prepare();
  const trips = await countTrips(rig, listed);
  assert.ok(Math.max(...trips) <= 2, `round trips: ${trips}`);
});
