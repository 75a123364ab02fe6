import assert from "node:assert/strict";
import { after, test } from "node:test";
import { workerEntry } from "../../../src/app/workerEntry.ts";
import type { StateSource } from "../../../src/core/stateReader.ts";
import { fixedForks } from "../../../src/ethereum/chainForks.ts";
import type { Address } from "../../../src/ethereum/hex.ts";
import { keccak256Hex } from "../../../src/ethereum/keccak.ts";
import { EvmWorkers } from "../../../src/evm/runs/evmWorkers.ts";
import { createSimulator } from "../../../src/simulation/simulator.ts";
import { callReads } from "../../../src/state/calls/callResult.ts";
import type { RunCall } from "../../../src/state/calls/callRun.ts";
import { CallRunner, type KnownRun } from "../../../src/state/calls/callRunner.ts";
import type { StateKey } from "../../../src/state/stateKey.ts";
import { PARENT } from "../../support/builders/parentBlock.ts";
import { SIMULATOR_OPTIONS } from "../../support/fakes/simulationRig.ts";
import { readyWorkers } from "../../support/servers/readyWorkers.ts";

const workers = new EvmWorkers({ entry: workerEntry("simulation"), size: 1 });
after(() => workers.close());
await readyWorkers(workers, 1);
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
const GAS_CAP = 50_000_000n;

const word = (value: bigint): string => value.toString(16).padStart(64, "0");
const known = ({ field, address }: StateKey): string => {
  if (field === "slot") {
    return word(0x42n);
  }
  return field === "code" && address === READER ? CODE_HASH.slice(2) : word(0n);
};
const values = {
  get: known,
  isReadable: () => true,
  hasProof: () => true,
  code: (hash: string) => (CODE_HASH === `0x${hash}` ? CODE : undefined),
};

/** Runs the call, and counts the requests of the thread for values. */
const runCounted = async (call: object, earlier?: KnownRun) => {
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
  const runner = new CallRunner({
    ...{ run, values, ancestorHash: () => undefined, headerOf: () => undefined, isComputed: () => true },
    ...{ follower: { generation: 0 }, never: new Set(), checks: { isForwarded: () => false } },
  });
  const outcome = await runner.run(
    {
      key: JSON.stringify(["eth_call", [call]]),
      method: "eth_call",
      block: PARENT,
      expected: earlier?.kind === "done" ? callReads(earlier.outcome.reads) : undefined,
    },
    GAS_CAP,
  );
  return { outcome, requests };
};

for (const [name, call] of [
  ["without a sender", { to: READER }],
  ["with a sender", { from: SENDER, to: READER }],
] as const) {
  test(`a call ${name} executes again without a request for values`, async () => {
    const first = await runCounted(call);
    assert.ok(first.requests > 0);
    const { outcome, requests } = await runCounted(call, first.outcome);
    assert.equal(outcome.kind === "done" && outcome.outcome.result, `0x${word(0x42n)}`);
    assert.equal(requests, 0);
  });
}
