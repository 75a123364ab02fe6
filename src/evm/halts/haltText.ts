import { inputsOf, memoryAccesses, nameOfUndefined, RETURNDATACOPY } from "./opcodes.ts";

// geth's error texts. Source: geth, core/vm/errors.go.

const STACK_LIMIT = 1024;
const UINT64 = 2n ** 64n;
const WORD_BYTES = 32n;
/** The largest memory that geth prices. Source: geth, core/vm/gas_table.go, memoryGasCost. */
const MAX_PRICED_MEMORY = 0x1f_ffff_ffe0n;

const FORMAT_PREFIX = 0xef;
export const OUT_OF_GAS = "out of gas";
/** SSTORE with 2,300 gas or less (EIP-2200). */
export const REENTRANCY_SENTRY = `${OUT_OF_GAS}: not enough gas for reentrancy sentry`;
export const GAS_OVERFLOW = "gas uint64 overflow";
export const CODE_STORE_OUT_OF_GAS = "contract creation code storage out of gas";
export const INVALID_CODE = "invalid code: must not begin with 0xef";
export const RETURN_DATA_OUT_OF_BOUNDS = "return data out of bounds";
export const INVALID_JUMP = "invalid jump destination";
export const CODE_TOO_LARGE = "max code size exceeded";
export const WRITE_PROTECTION = "write protection";
export const ADDRESS_COLLISION = "contract address collision";
export const INSUFFICIENT_BALANCE = "insufficient balance for transfer";
export const INIT_CODE_TOO_LARGE = "max initcode size exceeded";
/** A creation by an account whose nonce cannot be incremented (EIP-2681). */
export const NONCE_OVERFLOW = "nonce uint64 overflow";

/** A frame before the opcode that halted it. */
export interface HaltedFrame {
  readonly opCode: number;
  readonly stack: { readonly length: number; peek(count: number): readonly bigint[] };
  readonly gasLeft: bigint;
  readonly returnBytes: { readonly length: number };
  readonly memoryWordCount: bigint;
  readonly highestMemCost: bigint;
}

export const formatUndefinedOpcode = (opCode: number): string => `invalid opcode: ${nameOfUndefined(opCode)}`;

export const formatOverflow = (stackLength: number): string =>
  `stack limit reached ${stackLength} (${STACK_LIMIT - 1})`;

export const formatUnderflow = ({ opCode, stack }: Pick<HaltedFrame, "opCode" | "stack">): string =>
  `stack underflow (${stack.length} <=> ${inputsOf(opCode)})`;

/** Checks in geth's order: the stack, the memory's size, its price, then the opcode's own checks. Source: geth, core/vm/interpreter.go. */
export const formatOutOfGas = (halted: HaltedFrame): string => {
  const { opCode, stack, returnBytes } = halted;
  const inputs = inputsOf(opCode);
  if (stack.length < inputs) {
    return formatUnderflow(halted);
  }
  const operands = stack.peek(inputs);
  const ends = memoryAccesses(opCode, operands).flatMap(({ offset, length }) =>
    length === 0n ? [] : [offset + length],
  );
  if (ends.some((end) => end > UINT64 - WORD_BYTES)) {
    return GAS_OVERFLOW;
  }
  if (ends.some((end) => end > MAX_PRICED_MEMORY)) {
    return `${OUT_OF_GAS}: ${GAS_OVERFLOW}`;
  }
  if (opCode !== RETURNDATACOPY) {
    return OUT_OF_GAS;
  }
  const [, offset = 0n, length = 0n] = operands;
  const isOutside = offset + length > BigInt(returnBytes.length);
  return isOutside && copyGas(halted, ends[0] ?? 0n, length) <= halted.gasLeft ? RETURN_DATA_OUT_OF_BOUNDS : OUT_OF_GAS;
};

const COPY_BASE_GAS = 3n;
const COPY_WORD_GAS = 3n;
const MEMORY_WORD_GAS = 3n;
const MEMORY_QUADRATIC_DIVISOR = 512n;

/** Returns the cost of `words` words of memory. */
export const memoryGas = (words: bigint): bigint =>
  words * MEMORY_WORD_GAS + (words * words) / MEMORY_QUADRATIC_DIVISOR;

/** Returns the cost of a copy into memory up to `end`. */
const copyGas = ({ memoryWordCount, highestMemCost }: HaltedFrame, end: bigint, length: bigint): bigint => {
  const copied = COPY_BASE_GAS + wordsOf(length) * COPY_WORD_GAS;
  const words = wordsOf(end);
  return words <= memoryWordCount ? copied : copied + memoryGas(words) - highestMemCost;
};

export const wordsOf = (bytes: bigint): bigint => (bytes + WORD_BYTES - 1n) / WORD_BYTES;

/** Returns the text for a creation without gas to store its code. `first`: the first byte of the code. */
export const formatCodeStore = (first: number | undefined): string =>
  first === FORMAT_PREFIX ? INVALID_CODE : CODE_STORE_OUT_OF_GAS;
