import { formatData } from "../ethereum/hex.ts";

/** The selectors of Error(string) and Panic(uint256) in Solidity's ABI. */
const ERROR = "0x08c379a0";
const PANIC = "0x4e487b71";
const WORD = 32;
const SELECTOR = 4;

/** The texts of geth (accounts/abi/abi.go). */
const PANICS = new Map<bigint, string>([
  [0x00n, "generic panic"],
  [0x01n, "assert(false)"],
  [0x11n, "arithmetic underflow or overflow"],
  [0x12n, "division or modulo by zero"],
  [0x21n, "enum overflow"],
  [0x22n, "invalid encoded storage byte array accessed"],
  [0x31n, "out-of-bounds array access; popping on an empty array"],
  [0x32n, "out-of-bounds access of an array or bytesN"],
  [0x41n, "out of memory"],
  [0x51n, "uninitialized function"],
]);

const decoder = new TextDecoder();

/** Returns the reason text of a revert. Returns `undefined` if the data is not Error(string) or Panic(uint256). */
export const revertReason = (data: Uint8Array): string | undefined => {
  const selector = formatData(data.subarray(0, SELECTOR));
  const body = data.subarray(SELECTOR);
  if (selector === PANIC && body.length >= WORD) {
    const code = wordAt(body, 0);
    return PANICS.get(code) ?? `unknown panic code: 0x${code.toString(16)}`;
  }
  if (selector !== ERROR || body.length < WORD) {
    return undefined;
  }
  const start = wordAt(body, 0);
  if (start + BigInt(WORD) > BigInt(body.length)) {
    return undefined;
  }
  const length = wordAt(body, Number(start));
  const from = Number(start) + WORD;
  if (BigInt(from) + length > BigInt(body.length)) {
    return undefined;
  }
  return decoder.decode(body.subarray(from, from + Number(length)));
};

const wordAt = (bytes: Uint8Array, at: number): bigint => BigInt(formatData(bytes.subarray(at, at + WORD)));
