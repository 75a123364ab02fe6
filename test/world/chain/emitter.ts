import { type Address, type Data, formatData, type Hash, type Hex, parseData } from "../../../src/ethereum/hex.ts";
import type { LogEntry } from "../../../src/ethereum/receipt.ts";

/** The one contract of the chain. */
export const EMITTER: Address = `0x${"e1".repeat(20)}`;
export const TOPIC: Hash = `0x${"7a".repeat(32)}`;

/**
 * Without call data, it returns slot 0. With a word, it stores the word in slot 0 and emits LOG2 with TOPIC and the word.
 * Its gas is the same for each word that has no zero byte and differs from the stored one.
 */
export const EMITTER_CODE: Data = formatData(
  Buffer.concat([
    // CALLDATASIZE, PUSH1 14, JUMPI, PUSH0, SLOAD, PUSH0, MSTORE, PUSH1 32, PUSH0, RETURN
    Buffer.from("36600e575f545f5260205ff3", "hex"),
    // INVALID, INVALID, JUMPDEST, PUSH0, CALLDATALOAD, DUP1, PUSH0, SSTORE
    Buffer.from("fefe5b5f35805f55", "hex"),
    // PUSH32 TOPIC, PUSH0, PUSH0, LOG2, STOP
    Buffer.from("7f", "hex"),
    parseData(TOPIC),
    Buffer.from("5f5fa200", "hex"),
  ]),
);

const CALL_DATA_GAS = 32n * 16n;
const CODE_GAS = 2n + 3n + 10n + 1n + 2n + 3n + 3n + 2n + 5_000n + 3n + 2n + 2n + 1_125n;
/** Gas of one transaction to the contract (EIP-2028, EIP-2929, EIP-3529). */
export const STORE_GAS = 21_000n + CALL_DATA_GAS + CODE_GAS;

export const createLog = (word: Hex): LogEntry => ({ address: EMITTER, topics: [TOPIC, word], data: "0x" });
