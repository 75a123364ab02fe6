import assert from "node:assert/strict";
import { after, test } from "node:test";
import { workerEntry } from "../../src/app/workerEntry.ts";
import { fixedForks } from "../../src/ethereum/ethereumForks.ts";
import type { Address } from "../../src/ethereum/hex.ts";
import { keccak256Hex } from "../../src/ethereum/keccak.ts";
import { EvmWorkers, MustForwardError } from "../../src/evm/runs/evmWorkers.ts";
import type { ParentBlock } from "../../src/simulation/simulatedHeader.ts";
import { createSimulator } from "../../src/simulation/simulator.ts";
import { PARENT } from "../support/builders/parentBlock.ts";
import { plainSource } from "../support/fakes/plainSource.ts";
import { SIMULATOR_OPTIONS } from "../support/fakes/simulationRig.ts";

const workers = new EvmWorkers({ entry: workerEntry("simulation"), size: 1 });
after(() => workers.close());
const simulatorOf = (fork: "bpo2" | "amsterdam") =>
  createSimulator({ workers, forks: () => fixedForks(1n, fork), nativesAt: () => [], ...SIMULATOR_OPTIONS });
const simulator = simulatorOf("amsterdam");

const SENDER: Address = `0x${"aa".repeat(20)}`;
const RECIPIENT: Address = `0x${"bb".repeat(20)}`;
const CONTRACT: Address = `0x${"cc".repeat(20)}`;
/** Returns SLOTNUM (EIP-7843). */
const CODE = Uint8Array.fromHex("4b5f5260205ff3");
const STATE = new Map(
  [
    { address: SENDER, code: new Uint8Array(0) },
    { address: RECIPIENT, code: new Uint8Array(0) },
    { address: CONTRACT, code: CODE },
  ].map(({ address, code }) => [
    address,
    { nonce: 1n, balance: 10n ** 18n, code, codeHash: keccak256Hex(code), storage: new Map() },
  ]),
);
const BLOCK: ParentBlock = { ...PARENT, slotNumber: 77n, laterFields: ["blockAccessListHash", "slotNumber"] };
const base = (block: ParentBlock) => ({ block, source: plainSource("amsterdam", STATE) });

const text = (...params: readonly unknown[]) => new TextEncoder().encode(JSON.stringify(params));
const CALL = text({ from: SENDER, to: CONTRACT }, "latest");
const never = new AbortController().signal;
const read = async (answer: Promise<{ readonly body: unknown }>) =>
  JSON.parse(new TextDecoder().decode((await answer).body as Uint8Array));

test("a call on a block of Amsterdam reads the block's slot number", async () => {
  assert.equal(BigInt(await read(simulator.call(CALL, base(BLOCK), never))), 77n);
});

test("a node executes on a block without the header fields of its fork, or with those of a later one", async () => {
  await assert.rejects(simulator.call(CALL, base({ ...BLOCK, laterFields: [] }), never), MustForwardError);
  await assert.rejects(simulatorOf("bpo2").call(CALL, base(BLOCK), never), MustForwardError);
  await assert.rejects(simulator.call(CALL, base({ ...BLOCK, laterFields: ["newRoot"] }), never), MustForwardError);
});

/** The gas that go-ethereum charges (test/evm/amsterdam.json). */
test("the estimate of a transfer is its price", async () => {
  const estimate = (to: Address) =>
    read(simulator.estimateGas(text({ from: SENDER, to, value: "0x1" }, "latest"), base(BLOCK), never));
  assert.deepEqual([Number(await estimate(RECIPIENT)), Number(await estimate(SENDER))], [21_000, 12_000]);
});

test("a node executes what needs the gas of state", async () => {
  const simulation = text({ blockStateCalls: [{ calls: [{ from: SENDER, to: CONTRACT }] }] }, "latest");
  await assert.rejects(simulator.simulate(simulation, base(BLOCK), never), MustForwardError);
  await assert.rejects(simulator.createAccessList(CALL, base(BLOCK), never), MustForwardError);
});
