import assert from "node:assert/strict";
import { after, test } from "node:test";
import { MustForwardError } from "../../src/core/mustForwardError.ts";
import { createOpForks, fixedForks } from "../../src/ethereum/chainForks.ts";
import { type Address, type Hash, ZERO_HASH } from "../../src/ethereum/hex.ts";
import { keccak256Hex } from "../../src/ethereum/keccak.ts";
import { L1_BLOCK } from "../../src/ethereum/opFees.ts";
import { RpcError } from "../../src/jsonrpc/rpcError.ts";
import { createSimulator, type ExecutionBase, type SimulatorOptions } from "../../src/simulation/simulator.ts";
import { PARENT } from "../support/builders/parentBlock.ts";
import { createContext } from "../support/builders/request.ts";
import type { PlainAccount } from "../support/builders/stateRoot.ts";
import { plainSource } from "../support/fakes/plainSource.ts";
import { SIMULATOR_OPTIONS } from "../support/fakes/simulationRig.ts";
import { readyWorkers } from "../support/servers/evmWorkers.ts";

const NATIVE: Address = `0x${"b2".repeat(20)}`;
const workers = await readyWorkers({ maxWaiting: 2 });
after(() => workers.close());

const OPTIONS: SimulatorOptions = {
  workers,
  forks: () => fixedForks(1n, "prague"),
  nativesAt: () => [NATIVE],
  ...SIMULATOR_OPTIONS,
};
const simulator = createSimulator(OPTIONS);
/** For runs that must not end by themselves. */
const UNLIMITED: SimulatorOptions = { ...OPTIONS, gasCap: 2n ** 60n };

const SENDER: Address = `0x${"aa".repeat(20)}`;
const READER: Address = `0x${"cc".repeat(20)}`;
const LOOP: Address = `0x${"dd".repeat(20)}`;

const slotAt = (slot: number): Hash => `0x${slot.toString(16).padStart(64, "0")}`;
const SLOT = slotAt(7);

const account = (code: string, balance = 0n): PlainAccount => {
  const bytes = Uint8Array.fromHex(code);
  return {
    nonce: 1n,
    balance,
    code: bytes,
    codeHash: keccak256Hex(bytes),
    storage: new Map([[SLOT, Uint8Array.of(42)]]),
  };
};
const STATE = new Map([
  [SENDER, account("", 10n ** 18n)],
  // Returns sload(7). LOOP jumps to itself.
  [READER, account("60075460005260206000f3")],
  [LOOP, account("5b600056")],
]);

let states = 0;
/** Each base has its own id, so that no test uses cached state of another. */
const base = (): ExecutionBase & { readonly source: ReturnType<typeof plainSource> } => ({
  block: PARENT,
  source: plainSource(`state${++states}`, STATE),
});
const text = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));
const payload = (...calls: object[]) => text([{ blockStateCalls: [{ calls }] }, "latest"]);
const LOOP_PAYLOAD = text([
  { blockStateCalls: [{ blockOverrides: { gasLimit: "0xfffffffffffff" }, calls: [{ to: LOOP }] }] },
  "latest",
]);
const never = createContext();
const read = async (answer: Promise<{ readonly body: unknown }>) =>
  JSON.parse(new TextDecoder().decode((await answer).body as Uint8Array));

test("a small result is sent without other memory", async () => {
  const { body } = await simulator.simulate(payload({ from: SENDER, to: READER }), base(), never);
  assert.ok(body instanceof Uint8Array);
  assert.equal(body.buffer.byteLength, body.byteLength);
});

test("missing state is fetched in rounds, and cached for the next run", async () => {
  const on = base();
  const [block] = await read(simulator.simulate(payload({ from: SENDER, to: READER }), on, never));
  assert.equal(block.calls[0].returnData, `0x${"0".repeat(62)}2a`);
  // The first round reads sender and contract, the second the contract's slot.
  assert.equal(on.source.reads.length, 2);
  assert.deepEqual(on.source.reads[1]?.slots.length, 1);
  await read(simulator.simulate(payload({ from: SENDER, to: READER }), on, never));
  assert.equal(on.source.reads.length, 2);
});

test("simulated headers have the chain's time step and three zero roots, and gap blocks are omitted", async () => {
  const calls = [{ from: SENDER, to: READER }];
  const params = text([
    { blockStateCalls: [{ calls }, { blockOverrides: { number: "0x70", timestamp: "0x500" }, calls }] },
  ]);
  const blocks = await read(simulator.simulate(params, base(), never));
  assert.deepEqual(
    blocks.map((block: Record<string, unknown>) => [block.number, block.timestamp]),
    [
      ["0x65", "0x3ea"],
      ["0x70", "0x500"],
    ],
  );
  for (const name of ["stateRoot", "withdrawalsRoot", "mixHash"]) {
    assert.equal(blocks[0][name], ZERO_HASH);
  }
});

test("on Jovian, blobGasUsed counts each call with the chain's footprint scalar, 400 by default", async () => {
  const forks = createOpForks(901n, { jovian: 0n });
  const onOp = createSimulator({ ...OPTIONS, forks: () => forks });
  const simulated = async (state: typeof STATE) => {
    const on = { block: PARENT, source: plainSource(`state${++states}`, state) };
    const calls = [
      { from: SENDER, to: READER },
      { from: SENDER, to: READER },
    ];
    const params = text([{ blockStateCalls: [{ calls }, {}] }, "latest"]);
    const blocks = await read(onOp.simulate(params, on, never));
    return { blobGasUsed: blocks.map((block: Record<string, unknown>) => block.blobGasUsed), rounds: on.source.reads };
  };
  const operator = Uint8Array.fromHex("008b".padEnd(28, "0"));
  const l1Block = { ...account(""), storage: new Map([[slotAt(8), operator]]) };
  const configured = await simulated(new Map([...STATE, [L1_BLOCK, l1Block]]));
  assert.deepEqual(configured.blobGasUsed, [`0x${(2 * 100 * 139).toString(16)}`, "0x0"]);
  assert.equal(configured.rounds.length, 2, "the scalar is fetched together with the state of the calls");
  assert.deepEqual((await simulated(STATE)).blobGasUsed, [`0x${(2 * 100 * 400).toString(16)}`, "0x0"]);
});

test("an error is an object or a string, by configuration", async () => {
  const reverting = "60206000fd";
  const params = text([
    { blockStateCalls: [{ stateOverrides: { [READER]: { code: `0x${reverting}` } }, calls: [{ to: READER }] }] },
  ]);
  const data = `0x${"0".repeat(64)}`;
  const [asObject] = await read(simulator.simulate(params, base(), never));
  assert.deepEqual(asObject.calls[0].error, { code: 3, message: "execution reverted", data });
  assert.equal(asObject.calls[0].returnData, "0x");
  const [asString] = await read(createSimulator({ ...OPTIONS, errorShape: "string" }).simulate(params, base(), never));
  assert.equal(asString.calls[0].error, "execution reverted");
  assert.equal(asString.calls[0].returnData, data);
});

test("a run that exceeds its deadline is ended, and the next run succeeds", async () => {
  const short = createSimulator({ ...UNLIMITED, timeoutMs: 200 });
  await assert.rejects(short.simulate(LOOP_PAYLOAD, base(), never), {
    code: -32603,
    message: "execution aborted (timeout = 0.2s)",
  });
  const [block] = await read(simulator.simulate(payload({ to: READER }), base(), never));
  assert.equal(block.calls[0].status, "0x1");
});

test("a run above the limit of waiting runs fails with 503", async () => {
  const runs = [1, 2, 3, 4].map(() => simulator.simulate(payload({ to: READER }), base(), never));
  const outcomes = await Promise.allSettled(runs);
  const rejected = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason] : []));
  assert.equal(rejected.length, 1);
  assert.ok(rejected[0] instanceof RpcError && rejected[0].status === 503 && rejected[0].retryAfterSeconds === 1);
});

test("a waiting run whose client disconnects fails at once, and frees its place in the queue", async () => {
  const leaving = new AbortController();
  const ends = new AbortController();
  const running = createSimulator(UNLIMITED).simulate(LOOP_PAYLOAD, base(), createContext({ signal: ends.signal }));
  const waiting = simulator.simulate(payload({ to: READER }), base(), never);
  const aborted = simulator.simulate(payload({ to: READER }), base(), createContext({ signal: leaving.signal }));
  leaving.abort(new Error("disconnected"));
  await assert.rejects(aborted, /disconnected/);
  const next = simulator.simulate(payload({ to: READER }), base(), never);
  ends.abort(new Error("ended"));
  await assert.rejects(running, /ended/);
  for (const [block] of [await read(waiting), await read(next)]) {
    assert.equal(block.calls[0].status, "0x1");
  }
});

test("a run ends when its client disconnects", async () => {
  const leaving = new AbortController();
  const run = createSimulator(UNLIMITED).simulate(LOOP_PAYLOAD, base(), createContext({ signal: leaving.signal }));
  leaving.abort(new Error("disconnected"));
  await assert.rejects(run, /disconnected/);
});

test("calls of native contracts are forwarded to a node", async () => {
  await assert.rejects(simulator.simulate(payload({ from: SENDER, to: NATIVE }), base(), never), MustForwardError);
});

test("a node's error on a state read reaches the client", async () => {
  const error = new RpcError(-32000, "missing trie node");
  const source = { id: "pruned", read: () => Promise.reject(error) };
  await assert.rejects(simulator.simulate(payload({ to: READER }), { block: PARENT, source }, never), error);
});

test("eth_call, eth_estimateGas and eth_createAccessList run on the base state", async () => {
  const call = text([{ from: SENDER, to: READER }]);
  assert.equal(await read(simulator.call(call, base(), never)), `0x${"0".repeat(62)}2a`);
  const gas = BigInt(await read(simulator.estimateGas(call, base(), never)));
  assert.ok(gas >= 23_100n && gas < 24_000n, `${gas}`);
  const { accessList } = await read(simulator.createAccessList(call, base(), never));
  assert.deepEqual(accessList, [{ address: READER, storageKeys: [SLOT] }]);
  const failing = text([{ to: READER }, "latest", { [READER]: { code: "0x60206000fd" } }]);
  await assert.rejects(simulator.call(failing, base(), never), { code: 3, message: "execution reverted" });
});

test("an estimate has geth's error if a precompile is moved, and eth_call moves it", async () => {
  const moved = { [`0x${"04".padStart(40, "0")}`]: { movePrecompileToAddress: `0x${"ee".repeat(20)}` } };
  const call = text([{ from: SENDER, to: `0x${"ee".repeat(20)}`, data: "0x2a" }, "latest", moved]);
  assert.equal(await read(simulator.call(call, base(), never)), "0x2a");
  await assert.rejects(simulator.estimateGas(call, base(), never), {
    code: -32_000,
    message: `account 0x${"04".padStart(40, "0")} is not a precompile`,
  });
});

test("an estimate has geth's errors", async () => {
  const errorOf = (call: object) =>
    simulator.estimateGas(text([{ from: SENDER, ...call }]), base(), never).then(
      () => assert.fail("the estimate has no error"),
      ({ code, message }) => [code, message],
    );
  const poor: Address = `0x${"99".repeat(20)}`;
  for (const [call, message] of [
    // More gas does not help.
    [{ input: "0xfe" }, "invalid opcode: INVALID"],
    [{ input: "0x01" }, "stack underflow (0 <=> 2)"],
    [{ input: "0x60ef5f5360015ff3" }, "invalid code: must not begin with 0xef"],
    [{ to: LOOP, gas: "0x186a0" }, "gas required exceeds allowance (100000)"],
    [{ to: READER, input: `0x${"11".repeat(1000)}`, gas: "0x5800" }, "gas required exceeds allowance (22528)"],
    [
      { from: poor, to: READER, value: "0x1", gas: "0x186a0" },
      `failed with 100000 gas: insufficient funds for gas * price + value: address ${poor} have 0 want 1`,
    ],
    [{ from: poor, to: READER, gasPrice: "0x1" }, "insufficient funds for transfer"],
  ] as const) {
    assert.deepEqual(await errorOf(call), [-32_000, message]);
  }
});

test("simulate.engine: reference executes with the library, and leaves chains of the OP stack to a node", async (t) => {
  const byLibrary = await readyWorkers({ engine: "reference" });
  t.after(() => byLibrary.close());
  const options = { ...OPTIONS, workers: byLibrary };
  const call = () => payload({ from: SENDER, to: READER });
  const [block] = await read(createSimulator(options).simulate(call(), base(), never));
  assert.equal(block.calls[0].returnData, `0x${"0".repeat(62)}2a`);

  const forks = createOpForks(901n, { jovian: 0n });
  const onOp = createSimulator({ ...options, forks: () => forks });
  await assert.rejects(onOp.simulate(call(), base(), never), MustForwardError);
});
