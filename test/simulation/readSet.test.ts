import assert from "node:assert/strict";
import { after, test } from "node:test";
import { fixedForks } from "../../src/ethereum/chainForks.ts";
import type { Address, Hash } from "../../src/ethereum/hex.ts";
import { EMPTY_CODE_HASH, keccak256Hex } from "../../src/ethereum/keccak.ts";
import type { RunRequest } from "../../src/runs/evmWorkers.ts";
import { formatReads } from "../support/builders/formatReads.ts";
import { PARENT } from "../support/builders/parentBlock.ts";
import type { PlainAccount } from "../support/builders/stateRoot.ts";
import { plainSource } from "../support/fakes/plainSource.ts";
import { SIMULATOR_OPTIONS } from "../support/fakes/simulationRig.ts";
import { readyWorkers } from "../support/servers/evmWorkers.ts";

const workers = await readyWorkers();
after(() => workers.close());

const SENDER: Address = `0x${"aa".repeat(20)}`;
const READER: Address = `0x${"cc".repeat(20)}`;
const SLOT: Hash = `0x${"7".padStart(64, "0")}`;
const RICH: Address = `0x${"42".padStart(40, "0")}`;

const account = (code: string, balance: bigint): PlainAccount => {
  const bytes = Uint8Array.fromHex(code);
  return {
    nonce: 1n,
    balance,
    code: bytes,
    codeHash: bytes.length === 0 ? EMPTY_CODE_HASH : keccak256Hex(bytes),
    storage: new Map([[SLOT, Uint8Array.of(0x42)]]),
  };
};
const STATE = new Map([
  [SENDER, account("", 10n ** 18n)],
  // Returns balance(sload(7)). Before slot 7 is fetched, that is the balance of another account.
  [READER, account("6007543160005260206000f3", 0n)],
  [RICH, account("", 5n)],
]);
const READS = [`balance ${RICH}`, `code ${READER}`, `slot ${READER} ${SLOT}`];

let states = 0;
const run = async (name: string, params: readonly unknown[], options: Partial<RunRequest> = {}) => {
  const { blockTimeMs: _, ...limits } = SIMULATOR_OPTIONS;
  const paramsText = new TextEncoder().encode(JSON.stringify(params));
  const input = {
    ...limits,
    forks: fixedForks(1n, "prague"),
    paramsText,
    block: PARENT,
    parent: PARENT,
    timeStep: 12n,
  };
  const { reads } = await workers.run({
    name,
    input,
    source: plainSource(`state${++states}`, STATE),
    nativeContracts: [],
    tracesReads: true,
    timeoutMs: 30_000,
    signal: new AbortController().signal,
    ...options,
  });
  return reads && formatReads(reads);
};

test("a run returns no read set unless it is requested", async () => {
  assert.equal(await run("call", [{ from: SENDER, to: READER }], { tracesReads: false }), undefined);
});

test("eth_call returns what it read, without the reads of rounds that guessed, and without its sender", async () => {
  assert.deepEqual(await run("call", [{ from: SENDER, to: READER }]), READS);
});

test("a call with a price depends on the base fee and on the balance of its sender", async () => {
  const call = { from: SENDER, to: READER, gas: "0x186a0", maxFeePerGas: "0x77359400" };
  assert.deepEqual(await run("call", [call]), ["BASEFEE", ...READS, `balance ${SENDER}`].sort());
});

test("keys that the client overrides are not read", async () => {
  const overrides = { [READER]: { code: "0x6007543160085431600054" }, [RICH]: { balance: "0x1" } };
  const slots = { [SENDER]: { state: { [SLOT]: SLOT } } };
  const reads = await run("call", [{ from: SENDER, to: READER }, "latest", { ...overrides, ...slots }]);
  const slotAt = (slot: number) => `slot ${READER} 0x${String(slot).padStart(64, "0")}`;
  assert.deepEqual(reads, [`balance 0x${"0".repeat(40)}`, slotAt(0), slotAt(7), slotAt(8)]);
});

test("eth_estimateGas without gas depends on the gas limit of the block", async () => {
  assert.deepEqual(await run("estimateGas", [{ from: SENDER, to: READER }]), ["GASLIMIT", ...READS]);
  assert.deepEqual(await run("estimateGas", [{ from: SENDER, to: READER, gas: "0x186a0" }]), READS);
});

test("eth_simulateV1 returns the reads of all its calls", async () => {
  const calls = [
    { from: SENDER, to: READER },
    { from: SENDER, to: RICH, nonce: "0x2", value: "0x1" },
  ];
  const reads = await run("simulate", [{ blockStateCalls: [{ calls: calls.slice(0, 1) }, { calls: calls.slice(1) }] }]);
  assert.deepEqual(
    reads,
    [...READS, `balance ${SENDER}`, `code ${RICH}`, `emptiness ${RICH}`, `nonce ${SENDER}`].sort(),
  );
});

test("a private run has expected values from its start, and requests the others", async () => {
  const call = [{ from: SENDER, to: READER }];
  const requestsOf = async (accounts: readonly Address[]) => {
    const source = plainSource(`private${accounts.length}`, STATE);
    const signal = new AbortController().signal;
    const expected = await source.read({ accounts, slots: [[READER, SLOT]], blockHashes: [] }, signal);
    assert.deepEqual(await run("call", call, { source: { ...source, expected }, isPrivate: true }), READS);
    return source.reads.slice(1).map((keys) => keys.accounts);
  };
  assert.deepEqual(await requestsOf([SENDER, READER, RICH]), []);
  assert.deepEqual(await requestsOf([SENDER, READER]), [[RICH]]);
});
