import assert from "node:assert/strict";
import { test } from "node:test";
import { createOpForks } from "../../src/ethereum/chainForks.ts";
import { type Address, parseData, ZERO_HASH } from "../../src/ethereum/hex.ts";
import { EMPTY_CODE_HASH, keccak256Hex } from "../../src/ethereum/keccak.ts";
import { L1_BLOCK } from "../../src/ethereum/opFees.ts";
import { createdAddress } from "../../src/ethereum/receipt.ts";
import { concatBytes } from "../../src/ethereum/rlp.ts";
import { type EthereumFork, rulesAt } from "../../src/ethereum/rules.ts";
import { createEngines } from "../../src/evm/createEngines.ts";
import type { Engine, TransactionOptions } from "../../src/evm/engine.ts";
import { ReadRecorder } from "../../src/evm/readRecorder.ts";
import type { TransactionMessage } from "../../src/evm/transactionMessage.ts";
import { formatReads } from "../support/builders/formatReads.ts";
import { createBlock, createMessage } from "../support/builders/plainCall.ts";
import { readerOf } from "../support/builders/stateRoot.ts";

const FROM: Address = `0x${"aa".repeat(20)}`;
const TO: Address = `0x${"bb".repeat(20)}`;
const OTHER: Address = `0x${"dd".repeat(20)}`;
const DELEGATING: Address = `0x${"ee".repeat(20)}`;
const COINBASE: Address = `0x${"cc".repeat(20)}`;
const NOTHING = new Uint8Array(0);
const BLOCK = createBlock({ number: 1_000n, coinbase: COINBASE, blockHash: () => ZERO_HASH });
/** Source: EIP-1014. The salt has one byte. */
const createdAddress2 = (from: Address, salt: Uint8Array, code: Uint8Array): Address => {
  const padded = new Uint8Array(32);
  padded.set(salt, 31);
  const hash = keccak256Hex(concatBytes([Uint8Array.of(0xff), parseData(from), padded, parseData(keccak256Hex(code))]));
  return `0x${hash.slice(-40)}`;
};
const PUSH_OTHER = `73${OTHER.slice(2)}`;
const SLOT_1 = `0x${"1".padStart(64, "0")}`;
/** The checks of eth_call. */
const UNCHECKED: TransactionOptions = { checks: { nonce: false, sender: false, freeGas: true } };

const stateOf = (code: Uint8Array) => {
  const account = (bytes: Uint8Array, balance: bigint) => ({
    nonce: 1n,
    balance,
    code: bytes,
    codeHash: bytes.length === 0 ? EMPTY_CODE_HASH : keccak256Hex(bytes),
    storage: new Map(),
  });
  return new Map([
    [FROM, account(NOTHING, 10n ** 18n)],
    [TO, account(code, 1_000n)],
    [OTHER, account(Uint8Array.of(0), 0n)],
    [DELEGATING, account(Uint8Array.fromHex(`ef0100${OTHER.slice(2)}`), 0n)],
  ]);
};

interface Run {
  readonly code?: string;
  readonly message?: Partial<TransactionMessage>;
  readonly options?: TransactionOptions;
}

const readsOf = async (engine: Engine, { code = "00", message = {}, options = UNCHECKED }: Run) => {
  const state = engine.createState(readerOf(stateOf(Uint8Array.fromHex(code)), BLOCK.blockHash));
  const reads = new ReadRecorder();
  const call = createMessage({ from: FROM, to: TO, maxFeePerGas: 0n, maxPriorityFeePerGas: 0n, ...message });
  await engine.transact({ state, block: BLOCK, reads }, call, options);
  return formatReads(reads.readSet());
};

/** Calls OTHER with 65,535 gas. `value` pushes the value, if the opcode takes one. */
const callOf = (opcode: string, value: string): string => `5f5f5f5f${value}${PUSH_OTHER}61ffff${opcode}00`;
const CODE_OF_TO = `code ${TO}`;

/** Programs, with the keys that each reads besides its own code. */
const PROGRAMS: readonly (readonly [name: string, code: string, reads: readonly string[]])[] = [
  ["nothing", "00", []],
  ["BALANCE", `${PUSH_OTHER}31`, [`balance ${OTHER}`]],
  ["SELFBALANCE", "47", [`balance ${TO}`]],
  ["EXTCODESIZE", `${PUSH_OTHER}3b`, [`code ${OTHER}`]],
  ["EXTCODECOPY", `5f5f5f${PUSH_OTHER}3c`, [`code ${OTHER}`]],
  ["EXTCODEHASH", `${PUSH_OTHER}3f`, [`code ${OTHER}`, `emptiness ${OTHER}`]],
  ["SLOAD", "600154", [`slot ${TO} ${SLOT_1}`]],
  ["SSTORE", "6001600155", [`slot ${TO} ${SLOT_1}`]],
  ["TLOAD and TSTORE", "60015c5f5f5d", []],
  ["CALL without value", callOf("f1", "5f"), [`code ${OTHER}`]],
  ["CALL with value", callOf("f1", "6001"), [`balance ${TO}`, `code ${OTHER}`, `emptiness ${OTHER}`]],
  ["CALLCODE without value", callOf("f2", "5f"), [`code ${OTHER}`]],
  ["CALLCODE with value", callOf("f2", "6001"), [`balance ${TO}`, `code ${OTHER}`]],
  ["DELEGATECALL", callOf("f4", ""), [`code ${OTHER}`]],
  ["STATICCALL", callOf("fa", ""), [`code ${OTHER}`]],
  ["SELFDESTRUCT", `${PUSH_OTHER}ff`, [`balance ${TO}`, `emptiness ${OTHER}`]],
  ["BLOCKHASH of the oldest that has one", "6102e840", ["BLOCKHASH", "block hash 744"]],
  ["BLOCKHASH of an older block", "6102e740", ["BLOCKHASH"]],
  ["BLOCKHASH of the block itself", "6103e840", ["BLOCKHASH"]],
  [
    "the environment",
    "3a4142434445464a5a3248",
    [
      ...["BASEFEE", "BLOBBASEFEE", "CHAINID", "COINBASE", "GAS", "GASLIMIT", "GASPRICE"],
      ...["NUMBER", "ORIGIN", "PREVRANDAO", "TIMESTAMP"],
    ],
  ],
  [
    "a call of a delegating account",
    `5f5f5f5f73${DELEGATING.slice(2)}61fffffa00`,
    [`code ${DELEGATING}`, `code ${OTHER}`],
  ],
  ["the code of a delegating account", `73${DELEGATING.slice(2)}3b`, [`code ${DELEGATING}`]],
  ["a frame that reverts", "6001545f5ffd", [`slot ${TO} ${SLOT_1}`]],
  ["an opcode without its operands", "54", []],
  ["an opcode for which the gas does not suffice", `63ffffffff5f5f${PUSH_OTHER}3c`, [`code ${OTHER}`]],
];

for (const kind of ["fast", "reference"] as const) {
  const engines = await createEngines(kind);
  const engineOf = (fork: EthereumFork) => engines({ chainId: 1n, fork });
  const engine = engineOf("prague");

  for (const [name, code, reads] of PROGRAMS) {
    test(`${kind}: the reads of ${name}`, async () => {
      assert.deepEqual(await readsOf(engine, { code }), [...reads, CODE_OF_TO].sort());
    });
  }

  test(`${kind}: a creation reads the nonce of the creator, and what the new account is`, async () => {
    const created = createdAddress(TO, 1n);
    const reads = await readsOf(engine, { code: "5f5f5ff000" });
    assert.deepEqual(
      reads,
      [
        CODE_OF_TO,
        `nonce ${TO}`,
        ...["code", "emptiness", "nonce", "storage"].map((field) => `${field} ${created}`),
      ].sort(),
    );
    // The creator has not the value, so no address is needed.
    assert.deepEqual(await readsOf(engine, { code: "5f5f6107d0f000" }), [`balance ${TO}`, CODE_OF_TO, `nonce ${TO}`]);
  });

  test(`${kind}: a call without value and price does not depend on its sender, one with them does`, async () => {
    assert.deepEqual(await readsOf(engine, {}), [CODE_OF_TO]);
    const paid = await readsOf(engine, { message: { value: 1n } });
    assert.deepEqual(paid, [`balance ${FROM}`, CODE_OF_TO, `emptiness ${TO}`]);
    const priced = await readsOf(engine, { message: { maxFeePerGas: 1n } });
    assert.deepEqual(priced, ["BASEFEE", `balance ${FROM}`, CODE_OF_TO]);
  });

  test(`${kind}: a transaction reads what its checks compare, and not the balance of the fee recipient`, async () => {
    const message = { nonce: 1n, maxFeePerGas: 20n, maxPriorityFeePerGas: 2n };
    const reads = await readsOf(engine, { message, options: {} });
    assert.deepEqual(reads, ["BASEFEE", `balance ${FROM}`, `code ${FROM}`, CODE_OF_TO, `nonce ${FROM}`].sort());
  });

  test(`${kind}: before EIP-161 each call reads whether its target exists`, async () => {
    const code = `60006000600060006000${PUSH_OTHER}610ffff100`;
    assert.deepEqual(await readsOf(engineOf("tangerineWhistle"), { code }), [
      CODE_OF_TO,
      `code ${OTHER}`,
      `emptiness ${OTHER}`,
    ]);
    assert.deepEqual(await readsOf(engineOf("spuriousDragon"), { code }), [CODE_OF_TO, `code ${OTHER}`]);
  });

  test(`${kind}: a system call reads the code of its contract, and what that reads`, async () => {
    const state = engine.createState(readerOf(stateOf(Uint8Array.fromHex("600154")), BLOCK.blockHash));
    const reads = new ReadRecorder();
    await engine.systemCall({ state, block: BLOCK, reads }, TO, NOTHING);
    await engine.systemCall({ state, block: BLOCK, reads }, FROM, NOTHING);
    assert.deepEqual(formatReads(reads.readSet()), [`code ${FROM}`, CODE_OF_TO, `slot ${TO} ${SLOT_1}`]);
  });
}

test("in Amsterdam, a transaction that runs out of gas before its frame has read what it charged for", async () => {
  const engine = (await createEngines("fast"))({ chainId: 1n, fork: "amsterdam" });
  const absent: Address = `0x${"ab".repeat(20)}`;
  const paid = await readsOf(engine, { message: { to: absent, value: 1n, gas: 40_000n } });
  assert.deepEqual(paid, [`balance ${FROM}`, `code ${absent}`, `emptiness ${absent}`]);
});

test("in Amsterdam, a CREATE that cannot pay for the new account has read whether it exists", async () => {
  const engine = (await createEngines("fast"))({ chainId: 1n, fork: "amsterdam" });
  const created = createdAddress(TO, 1n);
  const reads = await readsOf(engine, { code: "5f5f5ff000", message: { gas: 60_000n } });
  assert.ok(reads.includes(`emptiness ${created}`));
  const second = createdAddress2(TO, Uint8Array.of(7), Uint8Array.of(0));
  // The init code is the byte 0 at offset 40. The memory is still empty.
  const code = "6007600160285ff500";
  const seconds = await readsOf(engine, { code, message: { gas: 60_000n } });
  assert.ok(seconds.includes(`emptiness ${second}`));
});

const optimism = (await createEngines("fast"))(rulesAt(createOpForks(10n, { jovian: 0n }), 1n, 1n));

test("a transaction of an OP stack reads the L1 attributes if it pays for its bytes, and no vault", async () => {
  const options: TransactionOptions = { checks: { nonce: false, sender: false, freeGas: false } };
  const message = { maxFeePerGas: 20n };
  const plain = await readsOf(optimism, { message, options });
  assert.deepEqual(plain, ["BASEFEE", `balance ${FROM}`, CODE_OF_TO]);
  const charged = await readsOf(optimism, { message, options: { ...options, raw: new Uint8Array(100).fill(7) } });
  const slots = [1, 3, 5, 6, 7, 8].map((slot) => `slot ${L1_BLOCK} 0x${String(slot).padStart(64, "0")}`);
  assert.deepEqual(charged, [...plain, ...slots].sort());
});

test("a deposit reads the nonce of its receipt, and the balance that its value needs", async () => {
  const reads = new ReadRecorder();
  const state = optimism.createState(readerOf(stateOf(NOTHING), BLOCK.blockHash));
  await optimism.deposit(
    { state, block: BLOCK, reads },
    {
      ...{ type: 0x7e, raw: NOTHING, hash: ZERO_HASH, sourceHash: ZERO_HASH, from: FROM, to: TO, mint: 5n, value: 3n },
      ...{ gas: 50_000n, isSystemTx: false, input: NOTHING },
    },
  );
  assert.deepEqual(
    formatReads(reads.readSet()),
    [`balance ${FROM}`, CODE_OF_TO, `emptiness ${TO}`, `nonce ${FROM}`].sort(),
  );
});

test("overridden keys are not recorded", () => {
  const reads = new ReadRecorder();
  reads.override(TO, { fields: ["balance"], slots: new Set([ZERO_HASH]) });
  reads.override(OTHER, { fields: [], slots: "all" });
  reads.account(TO, "balance", "code");
  reads.slot(TO, ZERO_HASH);
  reads.slot(TO, SLOT_1 as Address);
  reads.slot(OTHER, ZERO_HASH);
  assert.deepEqual(formatReads(reads.readSet()), [CODE_OF_TO, `slot ${TO} ${SLOT_1}`]);
});
