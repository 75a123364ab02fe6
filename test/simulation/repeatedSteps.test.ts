import assert from "node:assert/strict";
import { test } from "node:test";
import { fixedForks } from "../../src/ethereum/chainForks.ts";
import type { Address, Hash } from "../../src/ethereum/hex.ts";
import { EMPTY_CODE_HASH, keccak256Hex } from "../../src/ethereum/keccak.ts";
import { numberBytes } from "../../src/ethereum/rlp.ts";
import { BEACON_ROOTS, BLOCK_HASHES } from "../../src/ethereum/systemContracts.ts";
import type { EngineKind } from "../../src/evm/engine.ts";
import type { TransactionMessage } from "../../src/evm/transactionMessage.ts";
import { runSimulation } from "../../src/simulation/runSimulation.ts";
import { runEstimate } from "../../src/simulation/simulationRuns.ts";
import { PARENT } from "../support/builders/parentBlock.ts";
import type { PlainAccount } from "../support/builders/stateRoot.ts";
import { plainSource } from "../support/fakes/plainSource.ts";
import { SIMULATOR_OPTIONS } from "../support/fakes/simulationRig.ts";
import { startEvmThread } from "./evmThread.ts";

const SENDER: Address = `0x${"aa".repeat(20)}`;
/** Reads the slot that its input names. */
const SHALLOW: Address = `0x${"b1".repeat(20)}`;
/** Reads slots one after another. Each has the number of the next. The input is the first. */
const DEEP: Address = `0x${"b2".repeat(20)}`;
/** Reads the slot whose number slot 0 has, and stores what it read in slot 0. */
const POINTER: Address = `0x${"b3".repeat(20)}`;
/** Returns the balance of the address in its input. */
const BALANCE: Address = `0x${"b4".repeat(20)}`;
/** Increments slot 0 and returns it. */
const COUNTER = "5f54600101805f555f5260205ff3";
/** The contract of EIP-7002. */
const WITHDRAWALS: Address = "0x00000961ef480eb55e80d19ad83579a64c007002";
/** Reads three slots one after another if it has less than 1,000,000 gas. */
const FRUGAL: Address = `0x${"b5".repeat(20)}`;
const CALLS = 16;
const GWEI = 10n ** 9n;
const DEPTH = 6;

const word = (value: number): Hash => `0x${value.toString(16).padStart(64, "0")}`;

const account = (code: string, slots: readonly (readonly [number, number])[] = []): PlainAccount => {
  const bytes = Uint8Array.fromHex(code);
  return {
    nonce: 1n,
    balance: 10n ** 18n,
    code: bytes,
    codeHash: bytes.length === 0 ? EMPTY_CODE_HASH : keccak256Hex(bytes),
    storage: new Map(slots.map(([slot, value]) => [word(slot), numberBytes(BigInt(value))])),
  };
};

const chained = (first: number): readonly (readonly [number, number])[] =>
  Array.from({ length: 100 }, (_, at) => [first + at, first + at + 1] as const);
const STATE = new Map([
  [SENDER, account("")],
  [SHALLOW, account("5f355400", chained(1))],
  [DEEP, account(`5f35${"54".repeat(DEPTH)}00`, chained(1_000))],
  [BALANCE, account("5f35315f5260205ff3")],
  [FRUGAL, account("620f42405a1015600f575f545454505b00", chained(0))],
  [BEACON_ROOTS, account(COUNTER, [[0, 7]])],
  [BLOCK_HASHES, account(COUNTER, [[0, 8]])],
  [WITHDRAWALS, account(COUNTER, [[0, 9]])],
  [POINTER, account("5f54545f5500", [[0, 500], ...chained(500)])],
]);

const SHALLOW_CALLS = Array.from({ length: CALLS - 1 }, (_, at) => ({ to: SHALLOW, input: word(at + 1) }));

interface Run {
  readonly result: unknown;
  readonly rounds: number;
  readonly executed: readonly TransactionMessage[];
}

const { blockTimeMs: _, ...LIMITS } = SIMULATOR_OPTIONS;
const INPUT = { ...LIMITS, parent: PARENT, block: PARENT, forks: fixedForks(1n, "prague"), timeStep: 12n };

const inputOf = (params: readonly unknown[], options: object = {}) => ({
  ...INPUT,
  paramsText: new TextEncoder().encode(JSON.stringify(params)),
  ...options,
});

const RUNS = { simulate: runSimulation, estimateGas: runEstimate };

interface Test {
  after(end: () => void): void;
}

const startThread = async (t: Test, engine?: EngineKind) => {
  const thread = await startEvmThread(RUNS, plainSource("state", STATE), engine);
  t.after(() => thread.close());
  return thread;
};

/** Runs on a thread that has no values at first. */
const startRuns = async (t: Test, engine?: EngineKind) => {
  const thread = await startThread(t, engine);
  return async (name: keyof typeof RUNS, params: readonly unknown[], options: object = {}): Promise<Run> => {
    const before = thread.transactions.length;
    const output = await thread.run({ name, input: inputOf(params, options) });
    assert.ok(output.kind === "done", output.kind);
    return { result: output.output, rounds: output.rounds, executed: thread.transactions.slice(before) };
  };
};

interface Simulation extends Omit<Run, "executed"> {
  readonly transactions: number;
}

/** Simulates on a thread that has no values at first. */
const startSimulations = async (t: Test, engine?: EngineKind) => {
  const run = await startRuns(t, engine);
  return async (payload: object, options: object = {}): Promise<Simulation> => {
    const { result, rounds, executed } = await run("simulate", [payload], options);
    return {
      result: JSON.parse(new TextDecoder().decode(result as Uint8Array)),
      rounds,
      transactions: executed.length,
    };
  };
};

/** Each round executes a transaction that lacks a value twice: until the value is missing, and on a guess. */
const CASES = [
  [
    "each call reads a chain of slots of its own",
    Array.from({ length: CALLS }, (_, at) => ({ to: DEEP, input: word(1_000 + at * DEPTH) })),
    { rounds: 1 + DEPTH, transactions: CALLS * (2 + DEPTH) + 1 + DEPTH },
  ],
  [
    "only the last call reads a chain of slots",
    [...SHALLOW_CALLS, { to: DEEP, input: word(1_000) }],
    { rounds: 1 + DEPTH, transactions: 3 * CALLS + 2 * DEPTH },
  ],
  [
    "each call reads the slot that the call before has stored",
    Array.from({ length: CALLS }, () => ({ to: POINTER })),
    { rounds: 2 + CALLS, transactions: 8 * CALLS },
  ],
] as const;

const payloadOf = (calls: readonly object[]) => ({
  blockStateCalls: [{ calls: calls.map((call) => ({ from: SENDER, ...call })) }],
});

for (const [name, calls, most] of CASES) {
  test(`a missing value repeats its own transaction: ${name}`, async (t) => {
    const simulate = await startSimulations(t);
    const { result, rounds, transactions } = await simulate(payloadOf(calls));
    t.diagnostic(`${transactions} transactions in ${rounds} rounds`);
    assert.ok(rounds <= most.rounds, `${rounds} rounds`);
    assert.ok(transactions <= most.transactions, `${transactions} transactions`);
    assert.deepEqual(await simulate(payloadOf(calls)), { result, rounds: 0, transactions: CALLS });
  });
}

test("a missing value of the last transaction does not repeat the earlier ones", async (t) => {
  const simulate = await startSimulations(t);
  await simulate(payloadOf(SHALLOW_CALLS));
  const { rounds, transactions } = await simulate(payloadOf([...SHALLOW_CALLS, { to: DEEP, input: word(1_000) }]));
  assert.deepEqual([rounds, transactions], [1 + DEPTH, CALLS + 2 * (1 + DEPTH)]);
});

for (const engine of ["fast", "reference"] as const) {
  test(`overrides, system calls, requests and withdrawals that lack values are applied once: ${engine}`, async (t) => {
    const withdrawals = [SHALLOW, DEEP, POINTER].map((address, index) => ({
      index: `0x${index}`,
      validatorIndex: "0x0",
      address,
      amount: "0x1",
    }));
    const block = {
      blockOverrides: { withdrawals },
      stateOverrides: { [SHALLOW]: { nonce: "0x5" }, [DEEP]: { balance: "0x1" } },
      calls: [{ from: SENDER, to: POINTER, value: "0x1" }],
    };
    const balances = [SHALLOW, DEEP, POINTER, SENDER].map((address) => ({
      to: BALANCE,
      input: `${word(0).slice(0, 26)}${address.slice(2)}`,
    }));
    const counters = [BEACON_ROOTS, BLOCK_HASHES, WITHDRAWALS].map((to) => ({ to }));
    const payload = {
      blockStateCalls: [block, { blockOverrides: { number: "0x70" }, calls: [...balances, ...counters] }],
    };
    for (const profile of ["geth", "contract"] as const) {
      const simulate = await startSimulations(t, engine);
      const { result, rounds } = await simulate(payload, { profile });
      assert.ok(rounds > 1, `${rounds} rounds`);
      const warm = await simulate(payload, { profile });
      assert.deepEqual(warm.result, result);
      assert.equal(warm.rounds, 0);
      const credited = (result as readonly { readonly calls: readonly { readonly returnData: Hash }[] }[]).at(
        -1,
      )?.calls;
      assert.deepEqual(
        credited?.slice(0, balances.length).map(({ returnData }) => BigInt(returnData)),
        [10n ** 18n + GWEI, 1n + GWEI, 10n ** 18n + GWEI + 1n, 10n ** 18n - 1n],
      );
    }
  });
}

test("a run of an estimate that lacks a value does not repeat the runs before it", async (t) => {
  const run = await startRuns(t);
  const params = [{ from: SENDER, to: FRUGAL }];
  const cold = await run("estimateGas", params);
  const warm = await run("estimateGas", params);
  assert.equal(cold.result, warm.result);
  const [first] = warm.executed;
  const repeated = cold.executed.filter(({ gas }) => gas === first?.gas).length;
  t.diagnostic(`the first run ${repeated} times, ${cold.rounds} rounds`);
  assert.ok(repeated <= 2, `the first run was executed ${repeated} times`);
  assert.equal(cold.rounds, 4);
});
