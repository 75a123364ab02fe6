import assert from "node:assert/strict";
import { test } from "node:test";
import type { StateReader } from "../../src/core/stateReader.ts";
import { createOpForks, fixedForks } from "../../src/ethereum/chainForks.ts";
import { type Address, type Hash, ZERO_ADDRESS, ZERO_HASH } from "../../src/ethereum/hex.ts";
import { EMPTY_CODE_HASH, keccak256Hex } from "../../src/ethereum/keccak.ts";
import { rulesAt } from "../../src/ethereum/rules.ts";
import type { DepositTransaction } from "../../src/ethereum/transaction.ts";
import { createEngines } from "../../src/evm/createEngines.ts";
import type { Engine, TransactionContext, TransactionOptions } from "../../src/evm/engine.ts";
import { NotExecutableError } from "../../src/evm/executionErrors.ts";
import type { TransactionMessage } from "../../src/evm/transactionMessage.ts";
import { createBlock, createMessage } from "../support/builders/plainCall.ts";

const FROM: Address = `0x${"aa".repeat(20)}`;
const TO: Address = `0x${"bb".repeat(20)}`;
const NOTHING = new Uint8Array(0);
const ETHER = 10n ** 18n;
/** Stores 7 in slot 1, then the value of slot 2 in slot 3. */
const CODE = Uint8Array.fromHex("600760015560025460035500");
const CODE_HASH = keccak256Hex(CODE);
const slotAt = (slot: number): Hash => `0x${slot.toString(16).padStart(64, "0")}`;
const LACKED = slotAt(2);
const BLOCK = createBlock({ number: 5n, baseFee: 10n });
const MESSAGE = createMessage({
  from: FROM,
  to: TO,
  nonce: 3n,
  value: 5n,
  maxFeePerGas: 12n,
  maxPriorityFeePerGas: 1n,
});
const DEPOSIT: DepositTransaction = {
  type: 0x7e,
  raw: NOTHING,
  hash: ZERO_HASH,
  sourceHash: ZERO_HASH,
  from: FROM,
  to: TO,
  mint: 100n,
  value: 40n,
  gas: 100_000n,
  isSystemTx: false,
  input: NOTHING,
};

const engine = (await createEngines())(rulesAt(createOpForks(10n, { jovian: 0n }), 1n, 1n));
const reference = (await createEngines("reference"))(rulesAt(fixedForks(1n, "prague"), 1n, 1n));

/** A reader that lacks the value of slot 2 until it is known. */
const createLackingReader = () => {
  const known = { is: false };
  const error = new Error("a value is not known");
  const reader: StateReader = {
    account: (address) => {
      if (address === FROM) {
        return { nonce: 3n, balance: ETHER, codeHash: EMPTY_CODE_HASH };
      }
      return address === TO ? { nonce: 1n, balance: 0n, codeHash: CODE_HASH } : undefined;
    },
    code: () => CODE,
    storage: (_, slot) => {
      if (slot !== LACKED) {
        return NOTHING;
      }
      if (!known.is) {
        throw error;
      }
      return Uint8Array.of(9);
    },
    blockHash: () => ZERO_HASH,
  };
  return { known, error, reader };
};

type Run = (engine: Engine, context: TransactionContext) => Promise<unknown>;

const transact: Run = (by, context) => by.transact(context, MESSAGE, { raw: new Uint8Array(110).fill(7) });
const deposit: Run = (by, context) => by.deposit(context, DEPOSIT);
const systemCall: Run = (by, context) => by.systemCall(context, TO, NOTHING);

const METHODS = [
  ["transact", engine, transact],
  ["deposit", engine, deposit],
  ["systemCall", engine, systemCall],
  ["transact of the reference", reference, transact],
  ["systemCall of the reference", reference, systemCall],
] as const;

for (const [name, tested, run] of METHODS) {
  test(`${name} throws the reader's own error, leaves the state as before, and can be repeated`, async () => {
    const { known, error, reader } = createLackingReader();
    const state = tested.createState(reader);
    const earlier = slotAt(8);
    state.setStorage(TO, earlier, Uint8Array.of(4));
    state.endTransaction(true);
    const values = () => [
      state.nonceOf(FROM),
      state.balanceOf(FROM),
      state.balanceOf(TO),
      state.storageOf(TO, slotAt(1)),
    ];
    const before = values();

    await assert.rejects(run(tested, { state, block: BLOCK }), (thrown) => thrown === error);
    assert.deepEqual(values(), before);
    assert.deepEqual(state.storageOf(TO, earlier), Uint8Array.of(4));

    known.is = true;
    const repeated = await run(tested, { state, block: BLOCK });
    const fresh = tested.createState(reader);
    assert.deepEqual(repeated, await run(tested, { state: fresh, block: BLOCK }));
    assert.deepEqual(
      [1, 3, 8].map((slot) => state.storageOf(TO, slotAt(slot))[0]),
      [7, 9, 4],
    );
    assert.deepEqual(values(), [fresh.nonceOf(FROM), fresh.balanceOf(FROM), fresh.balanceOf(TO), Uint8Array.of(7)]);
  });
}

test("a rejected transaction leaves the state as before", async () => {
  const { reader } = createLackingReader();
  const state = engine.createState(reader);
  await assert.rejects(engine.transact({ state, block: BLOCK }, { ...MESSAGE, nonce: 4n }), /nonce too high/);
  assert.equal(state.nonceOf(FROM), 3n);
  assert.equal(state.balanceOf(FROM), ETHER);
});

test("a system call of an account without code does nothing", async () => {
  const { reader } = createLackingReader();
  const state = engine.createState(reader);
  assert.deepEqual(await engine.systemCall({ state, block: BLOCK }, ZERO_ADDRESS, NOTHING), NOTHING);
  assert.equal(state.changes().size, 0);
});

const FREE = { nonce: false, sender: false, freeGas: true };
const LACKING: readonly (readonly [string, Partial<TransactionMessage>, TransactionOptions])[] = [
  ["transfers as logs", {}, { tracesTransfers: true }],
  ["moved precompiles", {}, { movedPrecompiles: new Map([[TO, null]]) }],
  ["free gas in a block with a base fee", { maxFeePerGas: 0n, maxPriorityFeePerGas: 0n }, { checks: FREE }],
  ["senders with code", { from: TO, value: 0n, maxFeePerGas: 0n, maxPriorityFeePerGas: 0n }, { checks: FREE }],
];

for (const [what, fields, options] of LACKING) {
  test(`the reference engine leaves ${what} to a node`, async () => {
    const { known, reader } = createLackingReader();
    known.is = true;
    const state = reference.createState(reader);
    const block = what === "senders with code" ? { ...BLOCK, baseFee: 0n } : BLOCK;
    await assert.rejects(reference.transact({ state, block }, { ...MESSAGE, ...fields }, options), NotExecutableError);
    assert.equal(state.changes().size, 0);
  });
}

test("the reference engine leaves chains with OP-stack rules to a node", async () => {
  const { reader } = createLackingReader();
  const opReference = (await createEngines("reference"))(engine.rules);
  const context = { state: opReference.createState(reader), block: BLOCK };
  await assert.rejects(opReference.transact(context, MESSAGE), NotExecutableError);
  await assert.rejects(opReference.deposit(context, DEPOSIT), NotExecutableError);
  await assert.rejects(opReference.systemCall(context, TO, NOTHING), NotExecutableError);
});

test("the reference engine calculates gas, logs, access and changes as the other engine", async () => {
  const { known, reader } = createLackingReader();
  known.is = true;
  const other = (await createEngines())(reference.rules);
  const run = async (by: Engine) => {
    const state = by.createState(reader);
    const result = await by.transact({ state, block: BLOCK }, MESSAGE, { tracesAccess: true });
    // Neither accounts nor slots have an order.
    const changes = [...state.changes()].map(([address, { slots, ...change }]) => [address, change, new Map(slots)]);
    return { result, changes: new Set(changes) };
  };
  assert.deepEqual(await run(reference), await run(other));
});
