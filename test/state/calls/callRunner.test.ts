import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { StateSource } from "../../../src/core/stateReader.ts";
import { fixedForks } from "../../../src/ethereum/chainForks.ts";
import { type Address, formatWord, ZERO_ADDRESS } from "../../../src/ethereum/hex.ts";
import { keccak256Hex } from "../../../src/ethereum/keccak.ts";
import { createSimulator } from "../../../src/simulation/simulator.ts";
import type { RunCall } from "../../../src/state/calls/callRun.ts";
import { CallRunner, type KnownRun } from "../../../src/state/calls/callRunner.ts";
import { accountKeys, type StateKey, slotKey } from "../../../src/state/stateKey.ts";
import { ValueStore } from "../../../src/state/store/valueStore.ts";
import { knownStateOf } from "../../support/builders/nodeState.ts";
import { PARENT } from "../../support/builders/parentBlock.ts";
import { SIMULATOR_OPTIONS } from "../../support/fakes/simulationRig.ts";
import { readyWorkers } from "../../support/servers/evmWorkers.ts";

const workers = await readyWorkers();
after(() => workers.close());
const simulator = createSimulator({
  ...SIMULATOR_OPTIONS,
  forks: () => fixedForks(1n, "prague"),
  nativesAt: () => [],
  workers,
});

const READER: Address = `0x${"cc".repeat(20)}`;
const SENDER: Address = `0x${"aa".repeat(20)}`;
/** Returns sload(7). */
const CODE = Uint8Array.fromHex("60075460005260206000f3");
const CODE_HASH = keccak256Hex(CODE);
/** Returns whether it has more than a million gas. */
const METER: Address = `0x${"dd".repeat(20)}`;
const METER_CODE = Uint8Array.fromHex("5a620f42401060005260206000f3");
const METER_HASH = keccak256Hex(METER_CODE);
const HASHES = new Map([
  [READER, CODE_HASH],
  [METER, METER_HASH],
]);
const GAS_CAP = 50_000_000n;

const word = (value: bigint): string => value.toString(16).padStart(64, "0");
const known = ({ field, address }: StateKey): string => {
  if (field === "slot") {
    return word(0x42n);
  }
  return (field === "code" && HASHES.get(address)?.slice(2)) || word(0n);
};
const isEachProven = (_: StateKey): boolean => true;

const createValues = (isProven: typeof isEachProven) => {
  const values = new ValueStore(1_000_000);
  values.begin(PARENT);
  values.storeCode(CODE);
  values.storeCode(METER_CODE);
  const accounts = [READER, METER, SENDER, ZERO_ADDRESS].flatMap(accountKeys);
  for (const key of [...accounts, slotKey(READER, formatWord(7n))]) {
    values.add(key, PARENT, known(key), isProven(key) ? "proven" : "stated");
  }
  return values;
};

/** Runs the call, and counts the requests of the thread for values. */
const runCounted = async (call: object, earlier?: KnownRun, gas = GAS_CAP, isProven = isEachProven) => {
  let requests = 0;
  const run: RunCall = ({ paramsText, source, gasCap }) => {
    const counted: StateSource = {
      id: source.id,
      expected: source.expected,
      read: (keys, signal) => {
        requests++;
        return source.read(keys, signal);
      },
    };
    const { signal } = new AbortController();
    return simulator.trace({
      kind: "repeatedCall",
      paramsText,
      base: { block: PARENT, source: counted },
      gasCap,
      signal,
    });
  };
  const values = createValues(isProven);
  const runner = new CallRunner({
    ...{
      run,
      values,
      stateAt: knownStateOf(values),
      headerOf: () => ({}),
      isCertain: () => true,
      forget: () => undefined,
      defaults: { known: () => undefined },
    },
    ...{ follower: { generation: 0 }, checks: { isForwarded: () => false } },
  });
  const outcome = await runner.run(
    {
      key: JSON.stringify(["eth_call", [call]]),
      method: "eth_call",
      ...{ block: PARENT, node: "node", generation: 0 },
      expected: earlier?.kind === "answer" ? earlier.answer.reads : undefined,
    },
    gas,
  );
  return { outcome, requests };
};

const textOf = (outcome: KnownRun): string | undefined =>
  outcome.kind === "answer" ? Buffer.from(outcome.answer.body).toString() : undefined;

for (const [name, call] of [
  ["without a sender", { to: READER }],
  ["with a sender", { from: SENDER, to: READER }],
] as const) {
  test(`a call ${name} executes again without a request for values`, async () => {
    const first = await runCounted(call);
    assert.ok(first.requests > 0);
    const { outcome, requests } = await runCounted(call, first.outcome);
    assert.equal(textOf(outcome), `"0x${word(0x42n)}"`);
    assert.equal(requests, 0);
  });
}

const LITTLE = 60_000n;
for (const [name, gas, call, result, isProven] of [
  ["without gas, at a usual node", GAS_CAP, {}, 1n, true],
  ["without gas, at a node that gives little", LITTLE, {}, 0n, false],
  ["with more gas than a node gives", LITTLE, { gas: "0x4c4b40" }, 0n, false],
  ["with its own gas, below that of the node", LITTLE, { gas: "0xc350" }, 0n, true],
  ["with its own gas, at a usual node", GAS_CAP, { gas: "0x4c4b40" }, 1n, true],
] as const) {
  test(`a call ${name} is ${isProven ? "" : "not "}proven: the gas of a node's choice decides nothing`, async () => {
    const { outcome } = await runCounted({ to: METER, ...call }, undefined, gas);
    assert.ok(outcome.kind === "answer", outcome.kind);
    assert.equal(textOf(outcome), `"0x${word(result)}"`);
    assert.equal(outcome.answer.grade, isProven ? "proven" : "checked");
  });
}

for (const field of ["code", "slot"] as const) {
  test(`a call is not proven if a ${field} that it reads is not`, async () => {
    const reader = { to: READER, gas: "0xc350" };
    const { outcome } = await runCounted(reader, undefined, GAS_CAP, (key) => key.field !== field);
    assert.ok(outcome.kind === "answer", outcome.kind);
    assert.equal(outcome.answer.grade, "stated");
  });
}
