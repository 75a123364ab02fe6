import assert from "node:assert/strict";
import { test } from "node:test";
import { createOpForks } from "../../src/ethereum/chainForks.ts";
import { type Address, type Hash, ZERO_HASH } from "../../src/ethereum/hex.ts";
import { EMPTY_CODE_HASH } from "../../src/ethereum/keccak.ts";
import {
  BASE_FEE_VAULT,
  L1_BLOCK,
  L1_FEE_VAULT,
  l1Cost,
  OPERATOR_FEE_VAULT,
  parseL1Attributes,
} from "../../src/ethereum/opFees.ts";
import { type OpFork, rulesAt } from "../../src/ethereum/rules.ts";
import type { DepositTransaction } from "../../src/ethereum/transaction.ts";
import { createEngines } from "../../src/evm/createEngines.ts";
import type { Engine } from "../../src/evm/engine.ts";
import { l1AttributesOf } from "../../src/evm/opChainFees.ts";
import type { TransactionMessage } from "../../src/evm/transactionMessage.ts";
import { createBlock, createMessage } from "../support/builders/plainCall.ts";

const FROM: Address = `0x${"aa".repeat(20)}`;
const TO: Address = `0x${"bb".repeat(20)}`;
const COINBASE: Address = "0x4200000000000000000000000000000000000011";
const NOTHING = new Uint8Array(0);
const BLOCK = createBlock({ coinbase: COINBASE, baseFee: 10n });

const engines = await createEngines("fast");
const rulesOf = (fork: OpFork) => rulesAt(createOpForks(10n, { [fork]: 0n }), 1n, 1n);
const stateWith = (engine: Engine, balance: bigint) =>
  engine.createState({
    account: (address) => (address === FROM ? { nonce: 3n, balance, codeHash: EMPTY_CODE_HASH } : undefined),
    code: () => NOTHING,
    storage: () => NOTHING,
    blockHash: () => ZERO_HASH,
  });

const deposit = (fields: Partial<DepositTransaction>): DepositTransaction => ({
  type: 0x7e,
  raw: NOTHING,
  hash: ZERO_HASH,
  sourceHash: ZERO_HASH,
  from: FROM,
  to: TO,
  mint: 100n,
  value: 40n,
  gas: 50_000n,
  isSystemTx: false,
  input: NOTHING,
  ...fields,
});

test("a deposit mints and transfers without a fee, and increments the nonce", async () => {
  const engine = engines(rulesOf("isthmus"));
  const state = stateWith(engine, 0n);
  const result = await engine.deposit({ state, block: BLOCK }, deposit({}));
  assert.deepEqual([result.status, result.gasUsed, result.nonce], ["success", 21_000n, 3n]);
  assert.deepEqual([state.balanceOf(FROM), state.balanceOf(TO), state.nonceOf(FROM)], [60n, 40n, 4n]);
  assert.equal(state.balanceOf(COINBASE), 0n);
});

test("a deposit that cannot start mints its value, and uses all its gas", async () => {
  const engine = engines(rulesOf("isthmus"));
  for (const fields of [{ value: 101n }, { gas: 20_000n }]) {
    const state = stateWith(engine, 0n);
    const failing = deposit(fields);
    const result = await engine.deposit({ state, block: BLOCK }, failing);
    assert.deepEqual([result.status, result.gasUsed], ["halt", failing.gas]);
    assert.deepEqual([state.balanceOf(FROM), state.balanceOf(TO), state.nonceOf(FROM)], [100n, 0n, 4n]);
  }
});

test("a deposit whose code fails is reverted, except for its mint", async () => {
  const engine = engines(rulesOf("isthmus"));
  const state = stateWith(engine, 0n);
  state.setCode(TO, Uint8Array.fromHex("5f5ffd"));
  state.endTransaction(true);
  const result = await engine.deposit({ state, block: BLOCK }, deposit({}));
  assert.equal(result.status, "revert");
  assert.ok(result.gasUsed < 22_000n);
  assert.deepEqual([state.balanceOf(FROM), state.balanceOf(TO), state.nonceOf(FROM)], [100n, 0n, 4n]);
});

const CALL = createMessage({
  from: FROM,
  to: TO,
  nonce: 3n,
  gas: 21_000n,
  maxFeePerGas: 12n,
  maxPriorityFeePerGas: 1n,
});

const slot = (number: number): Hash => `0x${number.toString(16).padStart(64, "0")}`;

test("a transaction pays L1 fee, operator fee and base fee into their vaults", async () => {
  const engine = engines(rulesOf("jovian"));
  const ether = 10n ** 18n;
  const state = stateWith(engine, ether);
  // L1 base fee; the two scalars; blob base fee; operator fee scalar 2 and constant 5.
  state.setStorage(L1_BLOCK, slot(1), Uint8Array.fromHex("3b9aca00"));
  state.setStorage(L1_BLOCK, slot(3), Uint8Array.fromHex(`000003e8000003e8${"00".repeat(8)}`));
  state.setStorage(L1_BLOCK, slot(7), Uint8Array.of(1));
  state.setStorage(L1_BLOCK, slot(8), Uint8Array.fromHex("000000020000000000000005"));
  state.endTransaction(false);
  const l1 = l1AttributesOf({ state });
  assert.deepEqual(
    [l1.baseFeeScalar, l1.blobBaseFeeScalar, l1.operatorFeeScalar, l1.operatorFeeConstant],
    [1_000n, 1_000n, 2n, 5n],
  );
  const message: TransactionMessage = { ...CALL, gas: 60_000n, value: 7n };
  const raw = new Uint8Array(110).fill(7);
  const l1Fee = l1Cost(engine.rules, l1, raw).fee;
  await engine.transact({ state, block: BLOCK }, message, { raw });
  const operator = 21_000n * 2n * 100n + 5n;
  assert.equal(state.balanceOf(L1_FEE_VAULT), l1Fee);
  assert.ok(l1Fee > 0n);
  assert.equal(state.balanceOf(OPERATOR_FEE_VAULT), operator);
  assert.equal(state.balanceOf(BASE_FEE_VAULT), 21_000n * 10n);
  assert.equal(state.balanceOf(COINBASE), 21_000n);
  assert.equal(state.balanceOf(FROM), ether - 7n - 21_000n * 11n - operator - l1Fee);
});

test("L1 attributes of short calldata have the bytes that it has", () => {
  const full = Uint8Array.fromHex(`440a5e20${"07".repeat(174)}`);
  const numberAt = (bytes: Uint8Array, from: number, to: number): bigint =>
    BigInt(`0x0${bytes.subarray(from, to).toHex()}`);
  for (let length = 0; length <= full.length; length++) {
    const bytes = full.subarray(0, length);
    const read = parseL1Attributes(bytes);
    assert.equal(read.baseFee, numberAt(bytes, 36, 68), `${length} bytes`);
    assert.equal(read.operatorFeeScalar, numberAt(bytes, 164, 168), `${length} bytes`);
    assert.equal(read.operatorFeeConstant, numberAt(bytes, 168, 176), `${length} bytes`);
  }
});

test("Bedrock's L1 fee counts a signature, and is used in Ecotone's first block", async () => {
  // 100 bytes that are not zero, and 10 zeros. Source of the formula: op-geth, core/types/rollup_cost.go.
  const raw = new Uint8Array(110).fill(7, 0, 100);
  const [baseFee, overhead, scalar] = [1_000_000_000n, 188n, 684_000n];
  for (const [fork, nonZeroBytes] of [
    ["bedrock", 168n],
    ["regolith", 100n],
    ["ecotone", 100n],
  ] as const) {
    const engine = engines(rulesOf(fork));
    const state = stateWith(engine, 10n ** 18n);
    state.setStorage(L1_BLOCK, slot(1), Uint8Array.fromHex("3b9aca00"));
    state.setStorage(L1_BLOCK, slot(5), Uint8Array.of(188));
    state.setStorage(L1_BLOCK, slot(6), Uint8Array.fromHex("0a6fe0"));
    state.endTransaction(false);
    await engine.transact({ state, block: BLOCK }, CALL, { raw });
    const gas = 10n * 4n + nonZeroBytes * 16n + overhead;
    assert.equal(state.balanceOf(L1_FEE_VAULT), (gas * baseFee * scalar) / 1_000_000n, fork);
  }
});

test("P256VERIFY is a precompile since Fjord", () => {
  const p256: Address = "0x0000000000000000000000000000000000000100";
  assert.equal(engines(rulesOf("ecotone")).precompiles.includes(p256), false);
  assert.equal(engines(rulesOf("fjord")).precompiles.includes(p256), true);
});

/** Gas of the opcodes between the two measurements. */
const MEASURED_OPCODES = 115n;

/** Calls one precompile with that many zero bytes. */
const runPrecompile = async (engine: Engine, number: number, bytes: number) => {
  const state = stateWith(engine, 0n);
  // Copies the input, calls the precompile between two GAS, and returns the difference and whether the call succeeded.
  const address = number.toString(16).padStart(4, "0");
  state.setCode(TO, Uint8Array.fromHex(`365f5f375a5f5f365f61${address}5afa5a9060205290035f5260405ff3`));
  state.endTransaction(true);
  const message = {
    ...CALL,
    gas: 16_000_000n,
    input: new Uint8Array(bytes),
    maxFeePerGas: 0n,
    maxPriorityFeePerGas: 0n,
  };
  const checks = { nonce: false, sender: false, freeGas: true };
  const { returnData } = await engine.transact({ state, block: BLOCK }, message, { checks });
  const gas = BigInt(`0x${returnData.subarray(0, 32).toHex()}`) - MEASURED_OPCODES;
  return { gas, status: returnData[63] === 1 ? "success" : "halt" };
};
const PAIRING = 0x08;
/** A pair of points at infinity. */
const PAIR_BYTES = 192;

test("the pairing precompile halts above the input size of its fork", async () => {
  const run = async (fork: OpFork, bytes: number) =>
    (await runPrecompile(engines(rulesOf(fork)), PAIRING, bytes)).status;
  assert.equal(await run("granite", PAIR_BYTES * 10), "success");
  assert.equal(await run("granite", PAIR_BYTES * 587), "halt");
  for (const [fork, limit] of [
    ["jovian", 81_984],
    ["azul", 81_984],
    ["karst", 57_600],
  ] as const) {
    assert.equal(await run(fork, limit), "success", fork);
    assert.equal(await run(fork, limit + PAIR_BYTES), "halt", fork);
  }
});

test("Azul and Karst have the precompile prices of Osaka", async () => {
  const gasOf = async (fork: OpFork, precompile: number, bytes: number) =>
    (await runPrecompile(engines(rulesOf(fork)), precompile, bytes)).gas;
  const P256_VERIFY = 0x100;
  const MODEXP = 0x05;
  assert.deepEqual([await gasOf("jovian", P256_VERIFY, 160), await gasOf("jovian", MODEXP, 96)], [3_450n, 200n]);
  for (const fork of ["azul", "karst"] as const) {
    assert.deepEqual([await gasOf(fork, P256_VERIFY, 160), await gasOf(fork, MODEXP, 96)], [6_900n, 500n], fork);
  }
});

test("Karst limits the gas of a transaction, but not of a deposit", async () => {
  const gas = 16_777_217n;
  const message: TransactionMessage = { ...CALL, gas };
  const [jovian, karst] = [engines(rulesOf("jovian")), engines(rulesOf("karst"))];
  const place = (engine: Engine) => ({ state: stateWith(engine, 10n ** 18n), block: BLOCK });
  await assert.rejects(karst.transact(place(karst), message), /transaction gas limit too high/);
  assert.equal((await jovian.transact(place(jovian), message)).status, "success");
  assert.equal((await karst.deposit(place(karst), deposit({ gas }))).status, "success");
});
