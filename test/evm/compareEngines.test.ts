import assert from "node:assert/strict";
import { test } from "node:test";
import type { StateReader } from "../../src/core/stateReader.ts";
import { createOpForks, fixedForks } from "../../src/ethereum/chainForks.ts";
import { type Address, type Hash, parseData, ZERO_HASH } from "../../src/ethereum/hex.ts";
import { keccak256Hex } from "../../src/ethereum/keccak.ts";
import type { ChainForks } from "../../src/ethereum/rules.ts";
import { type Comparison, compareEngines, type EngineDifference } from "../../src/evm/comparison/compareEngines.ts";
import { createEngines, type Engines } from "../../src/evm/createEngines.ts";
import { CachedState } from "../../src/evm/reads/cachedState.ts";
import { completeRun } from "../../src/evm/reads/complete.ts";
import type { CallInput } from "../../src/simulation/callExecution.ts";
import { runSimulation, type SimulationInput } from "../../src/simulation/runSimulation.ts";
import { runCall } from "../../src/simulation/simulationTask.ts";
import { type Fault, faultyEngines } from "../support/builders/faultyEngines.ts";
import { PARENT } from "../support/builders/parentBlock.ts";
import { type PlainAccount, readerOf } from "../support/builders/stateRoot.ts";
import { plainSource } from "../support/fakes/plainSource.ts";
import { SIMULATOR_OPTIONS } from "../support/fakes/simulationRig.ts";

const SENDER: Address = `0x${"aa".repeat(20)}`;
const CALLED: Address = `0x${"bb".repeat(20)}`;
const CALLER: Address = `0x${"cc".repeat(20)}`;
const SLOT: Hash = `0x${"0".repeat(63)}1`;

const account = (code: string, balance = 0n): PlainAccount => {
  const bytes = Uint8Array.fromHex(code);
  return {
    nonce: 1n,
    balance,
    code: bytes,
    codeHash: keccak256Hex(bytes),
    storage: new Map([[SLOT, Uint8Array.of(9)]]),
  };
};
/** CALLED stores 5 in slot 1, logs nothing and stops. CALLER calls it and returns 32 bytes of zeros. */
const STATE = new Map([
  [SENDER, account("", 10n ** 18n)],
  [CALLED, account("600560015560006000a000")],
  [CALLER, account(`60006000600060006000${`73${CALLED.slice(2)}`}5af15060206000f3`)],
]);
/** The recipient's code. Others can run a difference through it, but not send the codes that it calls to a node. */
const CODES = [STATE.get(CALLER)?.codeHash];

const FORKS = fixedForks(1n, "prague");
const simulationInput = (forks: ChainForks, rest: object = {}): SimulationInput => ({
  ...SIMULATOR_OPTIONS,
  paramsText: new TextEncoder().encode(
    JSON.stringify([{ blockStateCalls: [{ calls: [{ from: SENDER, to: CALLER }] }], ...rest }]),
  ),
  parent: PARENT,
  forks,
  profile: "geth",
  timeStep: 12n,
});

const [ours, reference] = [await createEngines("auto"), await createEngines("reference")];

/** Runs on a state that has to be fetched, as in a thread. */
const compare = (engines: Engines, input = simulationInput(FORKS)): Promise<Comparison> => {
  const known = new CachedState({ codes: new Map(), isNative: () => false });
  const source = plainSource("state", STATE);
  return compareEngines({
    described: { name: "simulate", stateId: "state", input },
    run: (host) => runSimulation(input, host),
    withState: async (run) =>
      (await completeRun(run, { known, fetch: (keys) => source.read(keys, new AbortController().signal) })).result,
    ours: engines,
    reference,
  });
};

const differenceOf = async (engines: Engines): Promise<EngineDifference> => {
  const comparison = await compare(engines);
  assert.ok(comparison.outcome === "different", comparison.outcome);
  return comparison.difference;
};

test("a run without a difference is the same", async () => {
  assert.deepEqual(await compare(ours), { outcome: "same" });
});

const FAULTS: readonly (readonly [string, Fault])[] = [
  ["status", (result) => ({ ...result, status: "revert" })],
  ["output", (result) => ({ ...result, returnData: Uint8Array.of(1) })],
  ["gas", (result) => ({ ...result, gasUsed: result.gasUsed + 1n })],
  ["gasBeforeRefund", (result) => ({ ...result, maxUsedGas: result.maxUsedGas + 1n })],
  ["logs", (result) => ({ ...result, logs: [] })],
  [
    "reads",
    (result, { reads }) => {
      reads?.account(CALLED, "balance");
      return result;
    },
  ],
  [
    `slot ${CALLED} ${SLOT}`,
    (result, { state }) => {
      state.setStorage(CALLED, SLOT, Uint8Array.of(6));
      state.endTransaction(true);
      return result;
    },
  ],
  [
    `account ${SENDER}`,
    (result, { state }) => {
      state.addBalance(SENDER, 1n);
      state.endTransaction(true);
      return result;
    },
  ],
];

for (const [field, fault] of FAULTS) {
  test(`a difference of ${field} is found, with the recipient's code`, async () => {
    const difference = await differenceOf(faultyEngines(ours, fault));
    assert.equal(difference.field, field);
    assert.notEqual(difference.ours, difference.reference);
    assert.deepEqual(difference.codes, CODES);
  });
}

test("a difference of the state names the recipient of the transaction that made it", async () => {
  const calls = [SENDER, CALLED, CALLER].map((to) => ({ from: SENDER, to }));
  const input = simulationInput(FORKS, { blockStateCalls: [{ calls }] });
  const faulty = faultyEngines(ours, (result, { state }, { to }) => {
    if (to === CALLED) {
      state.addBalance(SENDER, 1n);
      state.endTransaction(true);
    }
    return result;
  });
  const comparison = await compare(faulty, input);
  assert.ok(comparison.outcome === "different");
  assert.deepEqual(comparison.difference.codes, [STATE.get(CALLED)?.codeHash]);
});

test("an error of one engine is a difference", async () => {
  const faulty = faultyEngines(ours, () => {
    throw new RangeError("out of bounds");
  });
  const difference = await differenceOf(faulty);
  assert.deepEqual([difference.ours, difference.field], ["RangeError: out of bounds", "error"]);
});

test("the payload reproduces the difference on the same state", async () => {
  const faulty = faultyEngines(ours, (result) => ({ ...result, gasUsed: result.gasUsed + 1n }));
  const { payload, ours: gas } = await differenceOf(faulty);
  const { stateId, input }: { stateId: string; input: SimulationInput } = JSON.parse(payload, (_, value) => {
    const { $bigint, $bytes } = value ?? {};
    return $bigint === undefined ? ($bytes === undefined ? value : parseData($bytes)) : BigInt($bigint);
  });
  assert.equal(stateId, "state");
  const repeated = await compare(faulty, input);
  assert.ok(repeated.outcome === "different");
  assert.deepEqual([repeated.difference.field, repeated.difference.ours], ["gas", gas]);
});

test("a run that the reference leaves to a node is skipped", async () => {
  assert.deepEqual(await compare(ours, simulationInput(createOpForks(10n, { jovian: 0n }))), { outcome: "skipped" });
  const traced = simulationInput(FORKS, { traceTransfers: true });
  assert.deepEqual(await compare(ours, traced), { outcome: "skipped" });
});

test("a run whose state cannot be completed is not compared, because its steps are guesses", async () => {
  const faulty = faultyEngines(ours, (result) => ({ ...result, gasUsed: 1n }));
  const input = simulationInput(FORKS);
  const known = new CachedState({ codes: new Map(), isNative: () => false });
  const comparison = await compareEngines({
    described: { name: "simulate", stateId: "state", input },
    run: (host) => runSimulation(input, host),
    withState: async (run) =>
      (await completeRun(run, { known, fetch: () => Promise.reject(new Error("no node")) })).result,
    ours: faulty,
    reference,
  });
  assert.deepEqual(comparison, { outcome: "skipped" });
});

test("a call that reverts on both engines is the same", async () => {
  const reverting = new Map([...STATE, [CALLER, account("60006000fd")]]);
  const input: CallInput = {
    paramsText: new TextEncoder().encode(JSON.stringify([{ from: SENDER, to: CALLER }, "latest"])),
    block: PARENT,
    forks: FORKS,
    gasCap: 50_000_000n,
  };
  const reader: StateReader = readerOf(reverting, () => ZERO_HASH);
  const comparison = await compareEngines({
    described: { name: "call", stateId: "state", input },
    run: (host) => runCall(input, host),
    withState: (run) => run(reader),
    ours,
    reference,
  });
  assert.deepEqual(comparison, { outcome: "same" });
});
