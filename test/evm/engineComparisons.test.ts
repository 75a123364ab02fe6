import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { test } from "node:test";
import { MustForwardError } from "../../src/core/mustForwardError.ts";
import { fixedForks } from "../../src/ethereum/chainForks.ts";
import { type Address, type Hash, ZERO_HASH } from "../../src/ethereum/hex.ts";
import { keccak256Hex } from "../../src/ethereum/keccak.ts";
import type { Comparison, EngineDifference } from "../../src/evm/comparison/compareEngines.ts";
import { type ComparisonOutcome, EngineComparisons } from "../../src/evm/comparison/engineComparisons.ts";
import { EvmWorkers } from "../../src/evm/runs/evmWorkers.ts";
import type { CallInput } from "../../src/simulation/callExecution.ts";
import { PARENT } from "../support/builders/parentBlock.ts";
import type { PlainAccount } from "../support/builders/stateRoot.ts";
import { plainSource } from "../support/fakes/plainSource.ts";

const SAME: Comparison = { outcome: "same" };
const codeAt = (number: number): Hash => `0x${number.toString(16).padStart(64, "0")}`;
const differing = (...codes: Hash[]): Comparison => ({
  outcome: "different",
  difference: { field: "gas", ours: "1", reference: "2", codes, payload: "{}" },
});

test("a share of the runs is compared, no more than one in a second and one at a time", async () => {
  const clock = { ms: 0, draw: 0.5 };
  const outcomes: ComparisonOutcome[] = [];
  let compared = 0;
  const comparisons = new EngineComparisons({
    share: 0.1,
    random: () => clock.draw,
    nowMs: () => clock.ms,
    onCompared: (outcome) => outcomes.push(outcome),
  });
  const sample = (result: Promise<Comparison>) =>
    comparisons.sample(() => {
      compared++;
      return result;
    });
  await sample(Promise.resolve(SAME));
  assert.equal(compared, 0);
  clock.draw = 0.09;
  const { promise, resolve } = Promise.withResolvers<Comparison>();
  const first = sample(promise);
  clock.ms = 5_000;
  await sample(Promise.resolve(SAME));
  assert.equal(compared, 1);
  resolve(SAME);
  await first;
  clock.ms = 6_000;
  await sample(Promise.reject(new Error("the deadline")));
  clock.ms = 6_999;
  await sample(Promise.resolve(SAME));
  clock.ms = 7_000;
  await sample(Promise.resolve({ outcome: "skipped" }));
  assert.deepEqual(outcomes, ["same", "failed", "skipped"]);
});

test("the codes of a difference are forwarded, at most the newest thousand", async () => {
  let nowMs = 0;
  const differences: EngineDifference[] = [];
  const comparisons = new EngineComparisons({
    share: 1,
    nowMs: () => nowMs,
    onDifference: (difference) => differences.push(difference),
  });
  assert.deepEqual(comparisons.forwardedCodes, []);
  await comparisons.sample(async () => differing(codeAt(1), codeAt(2)));
  assert.deepEqual(comparisons.forwardedCodes, [codeAt(1), codeAt(2)]);
  nowMs += 1_000;
  await comparisons.sample(async () => differing(...Array.from({ length: 999 }, (_, at) => codeAt(at + 3))));
  assert.equal(comparisons.forwardedCodes.length, 1_000);
  assert.deepEqual(comparisons.forwardedCodes.slice(0, 2), [codeAt(2), codeAt(3)]);
  assert.equal(differences.length, 2);
});

const SENDER: Address = `0x${"aa".repeat(20)}`;
const FAULTY: Address = `0x${"bb".repeat(20)}`;
const CALLS_FAULTY: Address = `0x${"cc".repeat(20)}`;
const SOUND: Address = `0x${"dd".repeat(20)}`;
const account = (code: string): PlainAccount => {
  const bytes = Uint8Array.fromHex(code);
  return { nonce: 1n, balance: 0n, code: bytes, codeHash: keccak256Hex(bytes), storage: new Map() };
};
/** FAULTY returns 32 bytes, on which the engine of the worker has a fault. The others return nothing. */
const STATE = new Map([
  [SENDER, account("")],
  [FAULTY, account("60206000f3")],
  [CALLS_FAULTY, account(`60006000600060006000${`73${FAULTY.slice(2)}`}5af100`)],
  [SOUND, account("600100")],
]);

test("after a difference a run that touches the code is forwarded, also from inside a call; others are not", async (t) => {
  const events = new EventEmitter();
  const comparisons = new EngineComparisons({
    share: 1,
    nowMs: () => 0,
    onDifference: (difference) => events.emit("difference", difference),
  });
  const entry = { url: new URL("./faulty.worker.ts", import.meta.url), task: "faulty" };
  const workers = new EvmWorkers({ entry, size: 1, comparisons });
  t.after(() => workers.close());
  const source = plainSource("state", STATE);
  const call = (to: Address, ...overrides: object[]) => {
    const input: CallInput = {
      paramsText: new TextEncoder().encode(JSON.stringify([{ from: SENDER, to }, "latest", ...overrides])),
      block: { ...PARENT, hash: ZERO_HASH },
      forks: fixedForks(1n, "prague"),
      gasCap: 50_000_000n,
    };
    const { signal } = new AbortController();
    return workers.run({ name: "call", input, source, nativeContracts: [], timeoutMs: 30_000, signal });
  };
  const found = once(events, "difference");
  const { output } = await call(FAULTY);
  assert.equal(output, `0x${"00".repeat(33)}`);
  const [difference]: EngineDifference[] = await found;
  assert.equal(difference?.field, "output");
  assert.deepEqual(comparisons.forwardedCodes, [STATE.get(FAULTY)?.codeHash]);

  await assert.rejects(call(FAULTY), MustForwardError);
  await assert.rejects(call(CALLS_FAULTY), MustForwardError);
  await assert.rejects(call(SOUND, { [SOUND]: { code: "0x60206000f3" } }), MustForwardError);
  assert.equal((await call(SOUND)).output, "0x");
});

test("a run without a state is not compared", async (t) => {
  let samples = 0;
  const comparisons = new EngineComparisons({
    share: 1,
    random: () => {
      samples++;
      return 1;
    },
  });
  const entry = { url: new URL("./echo.worker.ts", import.meta.url), task: "echo" };
  const workers = new EvmWorkers({ entry, size: 1, comparisons });
  t.after(() => workers.close());
  const run = (input: number, id: string) => {
    const source = { id, read: () => Promise.reject(new Error("no run reads state")) };
    const { signal } = new AbortController();
    return workers.run({ name: "echo", input, source, nativeContracts: [], timeoutMs: 30_000, signal });
  };
  await run(1, "");
  assert.equal(samples, 0);
  await run(2, "state");
  assert.equal(samples, 1);
});

test("a comparison has a thread of its own, so that no run waits for it", async (t) => {
  const comparisons = new EngineComparisons({ share: 1 });
  const entry = { url: new URL("./echo.worker.ts", import.meta.url), task: "echo" };
  const workers = new EvmWorkers({ entry, size: 1, comparisons });
  t.after(() => workers.close());
  const source = plainSource("state", STATE);
  const run = (name: string) => {
    const { signal } = new AbortController();
    return workers.run({ name, input: 7, source, nativeContracts: [], timeoutMs: 30_000, signal });
  };
  // Its comparison executes it twice, and so does not end.
  await run("once");
  assert.equal((await run("echo")).output, 7);
});
