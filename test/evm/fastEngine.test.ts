import assert from "node:assert/strict";
import { test } from "node:test";
import { fixedForks } from "../../src/ethereum/chainForks.ts";
import { type Address, ZERO_ADDRESS, ZERO_HASH } from "../../src/ethereum/hex.ts";
import { rulesAt } from "../../src/ethereum/rules.ts";
import { DeadlineError, NotExecutableError } from "../../src/evm/executionErrors.ts";
import { FastEngine } from "../../src/evm/fast/fastEngine.ts";
import { FastInstances } from "../../src/evm/fast/fastInstances.ts";
import { createBlock, createMessage } from "../support/builders/plainCall.ts";

const AT: Address = `0x${"ca".repeat(20)}`;
const NOTHING = new Uint8Array(0);
const GAS = 30_000_000n;
const BLOCK = createBlock({ number: 5n });
const CALL = createMessage({ to: AT, gas: GAS });
const OPTIONS = { checks: { nonce: false, sender: false, freeGas: true } };
const EMPTY = { account: () => undefined, code: () => NOTHING, storage: () => NOTHING, blockHash: () => ZERO_HASH };
const RULES = rulesAt(fixedForks(1n, "osaka"), 1n, 1n);

/** Returns a state with that code at one address. */
const stateWith = (engine: FastEngine, code: string) => {
  const state = engine.createState(EMPTY);
  state.setCode(AT, Uint8Array.fromHex(code));
  state.endTransaction(true);
  return state;
};

/** Each stores one, and then does not end by itself before its gas does. */
const ENDLESS = [
  ["jumps", "60016000555b5f50600556"],
  ["calls", "60016000555b5f5f5f5f5f60045af150600556"],
  ["a precompile", "60016000555b5f5f6101805f60085afa50600556"],
  ["creations", "60016000555b5f5f5ff050600556"],
] as const;

for (const [name, code] of ENDLESS) {
  test(`a loop of ${name} ends at the deadline, and leaves the state as before`, async () => {
    const deadline = { isOver: true };
    const engine = new FastEngine(RULES, new FastInstances(() => deadline.isOver));
    const state = stateWith(engine, code);
    await assert.rejects(engine.transact({ state, block: BLOCK }, CALL, OPTIONS), DeadlineError);
    assert.deepEqual(state.storageOf(AT, ZERO_HASH), NOTHING);
    assert.equal(state.nonceOf(ZERO_ADDRESS), 0n);
    deadline.isOver = false;
    state.setCode(AT, Uint8Array.fromHex("6001600055"));
    state.endTransaction(true);
    assert.equal((await engine.transact({ state, block: BLOCK }, CALL, OPTIONS)).status, "success");
    assert.deepEqual(state.storageOf(AT, ZERO_HASH), Uint8Array.of(1));
  });
}

test("states of one instance do not see each other's writes", async () => {
  const engine = new FastEngine(RULES, new FastInstances());
  // Adds one to slot 0 and returns it.
  const code = "5f546001018060005560005260205ff3";
  const [one, other] = [stateWith(engine, code), stateWith(engine, code)];
  for (const [state, expected] of [
    [one, 1],
    [one, 2],
    [other, 1],
    [one, 3],
    [other, 2],
  ] as const) {
    const { returnData } = await engine.transact({ state, block: BLOCK }, CALL, OPTIONS);
    assert.equal(returnData[31], expected);
  }
  assert.deepEqual(one.storageOf(AT, ZERO_HASH), Uint8Array.of(3));
  assert.deepEqual(other.storageOf(AT, ZERO_HASH), Uint8Array.of(2));
});

test("an instance whose memory has grown gets no more states", async () => {
  const instances = new FastInstances();
  const engine = new FastEngine(RULES, instances);
  const first = instances.take("ethereum");
  assert.equal(instances.take("ethereum"), first);
  // Fills transient storage with new slots.
  const state = stateWith(engine, "5b60015a5d5f56");
  const transaction = engine.transact({ state, block: BLOCK }, { ...CALL, gas: GAS * 2n }, OPTIONS);
  assert.equal((await transaction).status, "halt");
  assert.notEqual(instances.take("ethereum"), first);
});

test("an instance that has trapped gets no more states", () => {
  const instances = new FastInstances();
  const instance = instances.take("ethereum");
  // The length is greater than that of the input.
  assert.throws(() => instance.run("transact", 1 << 24), /the module trapped/);
  assert.notEqual(instances.take("ethereum"), instance);
});

test("numbers that the module cannot represent are left to a node", async () => {
  const engine = new FastEngine(RULES, new FastInstances());
  const state = stateWith(engine, "00");
  state.setAccount(ZERO_ADDRESS, 0n, 2n ** 255n);
  state.endTransaction(true);
  const price = 2n ** 128n;
  const priced = { ...CALL, gas: 30_000n, maxFeePerGas: price, maxPriorityFeePerGas: price };
  await assert.rejects(engine.transact({ state, block: BLOCK }, priced, OPTIONS), NotExecutableError);
  const block = { ...BLOCK, baseFee: 2n ** 64n };
  await assert.rejects(engine.transact({ state, block }, CALL, OPTIONS), NotExecutableError);
  assert.equal((await engine.transact({ state, block: BLOCK }, CALL, OPTIONS)).status, "success");
});
