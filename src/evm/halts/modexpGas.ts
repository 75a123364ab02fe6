import { larger, smaller } from "../../ethereum/bigintOrder.ts";
import { formatData } from "../../ethereum/hex.ts";

const WORD_BYTES = 32;
const HEADER_BYTES = 3 * WORD_BYTES;
const MIN_GAS = 500n;
const SHORT_BYTES = 32n;
const SHORT_COMPLEXITY = 16n;
const EXPONENT_BYTE_GAS = 16n;

/** Returns the 32 bytes at offset `at` as a number. Bytes beyond the end are zero. */
export const wordAt = (data: Uint8Array, at: number): bigint => {
  const word = new Uint8Array(WORD_BYTES);
  word.set(data.subarray(at, at + WORD_BYTES));
  return BigInt(formatData(word));
};

/** Returns the lengths of base, exponent and modulus, in bytes. */
export const modexpLengths = (data: Uint8Array): readonly [base: bigint, exponent: bigint, modulus: bigint] => [
  wordAt(data, 0),
  wordAt(data, WORD_BYTES),
  wordAt(data, 2 * WORD_BYTES),
];

/** Returns the gas of a modular exponentiation since Osaka (EIP-7883). */
export const modexpGas = (data: Uint8Array): bigint => {
  const [base, exponent, modulus] = modexpLengths(data);
  const longest = larger(base, modulus);
  const words = (longest + 7n) / 8n;
  const complexity = longest > SHORT_BYTES ? 2n * words * words : SHORT_COMPLEXITY;
  const headBytes = smaller(exponent, SHORT_BYTES);
  const start = base > BigInt(data.length) ? data.length : HEADER_BYTES + Number(base);
  const head = wordAt(data, start) >> (8n * (SHORT_BYTES - headBytes));
  const headBits = head === 0n ? 0n : BigInt(head.toString(2).length - 1);
  const rest = exponent > SHORT_BYTES ? EXPONENT_BYTE_GAS * (exponent - SHORT_BYTES) : 0n;
  return larger(complexity * larger(rest + headBits, 1n), MIN_GAS);
};
