import type { Address } from "../../ethereum/hex.ts";
import { isForkActive, type Rules } from "../../ethereum/rules.ts";
import { forkNumbers } from "../checks/forkNumbers.ts";
import { calledAddress, inputsOf, memoryAccesses, nameOfUndefined, RETURNDATACOPY } from "./opcodes.ts";

// geth's error texts. Source: geth, core/vm/errors.go.

export const STACK_LIMIT = 1024;
const UINT64 = 2n ** 64n;
const WORD_BYTES = 32n;
/** The largest memory that geth prices. Source: geth, core/vm/gas_table.go, memoryGasCost. */
const MAX_PRICED_MEMORY = 0x1f_ffff_ffe0n;

/** EIP-3541 */
export const FORMAT_PREFIX = 0xef;
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

// geth charges a constant for each opcode, and then computes the rest of its price. An error of that computation is wrapped.
// Source: geth, core/vm/interpreter.go, chargeDynamicGas.

const WRAPPED_OUT_OF_GAS = `${OUT_OF_GAS}: ${OUT_OF_GAS}`;
const WARM_ACCESS_GAS = 100n;
const SELFDESTRUCT_GAS = 5_000n;
const SELFDESTRUCT = 0xff;
const CREATES: ReadonlySet<number> = new Set([0xf0, 0xf5]);
/** KECCAK256, EXTCODECOPY, and the opcodes that copy, load or store memory for 3 gas. */
const CONSTANTS: ReadonlyMap<number, bigint> = new Map([
  [0x20, 30n],
  [0x3c, WARM_ACCESS_GAS],
  ...[0x37, 0x39, 0x3e, 0x51, 0x52, 0x53, 0x5e].map((opCode) => [opCode, 3n] as const),
]);
const ADDRESS_BITS = 160;
const PRECOMPILE_COUNT = 0x11;
const P256VERIFY = 0x100n;
/** They are always warm. */
const PRECOMPILES: ReadonlySet<bigint> = new Set([
  ...Array.from({ length: PRECOMPILE_COUNT }, (_, index) => BigInt(index + 1)),
  P256VERIFY,
]);

/** The gas that an opcode costs in any case, since Berlin. Only for opcodes with a price that can fail. */
const constantGas = (opCode: number, rules: Rules): bigint => {
  if (CREATES.has(opCode)) {
    return forkNumbers(rules).createGas;
  }
  if (opCode === SELFDESTRUCT) {
    return SELFDESTRUCT_GAS;
  }
  return calledAddress(opCode, []) === undefined ? (CONSTANTS.get(opCode) ?? 0n) : WARM_ACCESS_GAS;
};

/** Whether the gas for the opcode's constant is missing, which geth charges first. The stack is checked before. */
export const lacksConstantGas = ({ opCode, gasLeft }: HaltedFrame, rules: Rules): boolean =>
  gasLeft < constantGas(opCode, rules);

/** The address whose access may be cold. */
const accessedAddress = ({ opCode, stack }: HaltedFrame): bigint | undefined => {
  const operands = stack.peek(inputsOf(opCode));
  return opCode === SELFDESTRUCT ? BigInt.asUintN(ADDRESS_BITS, operands[0] ?? 0n) : calledAddress(opCode, operands);
};

/**
 * Whether the gas for the access to a cold account is missing. It is not known which accounts are warm: each but a precompile and
 * the frame's own account counts as cold.
 */
const lacksColdAccess = (halted: HaltedFrame, rules: Rules, own: Address): boolean => {
  const { opCode, gasLeft } = halted;
  const address = accessedAddress(halted);
  if (address === undefined || address === BigInt(own) || PRECOMPILES.has(address)) {
    return false;
  }
  const cold = forkNumbers(rules).coldAccessGas;
  return gasLeft < (opCode === SELFDESTRUCT ? SELFDESTRUCT_GAS + cold : cold);
};

/**
 * Returns the text for an opcode that is out of gas, since Berlin. From Prague on, geth compares all parts of a call's price while
 * it computes them (EIP-7702). Before, it does so for the access to a cold account. Source: geth, core/vm/operations_acl.go.
 * `own`: the account whose code runs.
 */
export const formatPriceOutOfGas = (halted: HaltedFrame, rules: Rules, own: Address): string => {
  const { opCode, stack } = halted;
  if (stack.length < inputsOf(opCode)) {
    return formatUnderflow(halted);
  }
  if (lacksConstantGas(halted, rules)) {
    return OUT_OF_GAS;
  }
  const text = formatOutOfGas(halted);
  if (text === GAS_OVERFLOW) {
    return text;
  }
  const isCall = calledAddress(opCode, []) !== undefined;
  const isWrapped = isCall && text === OUT_OF_GAS && isForkActive(rules, "prague");
  return isWrapped || lacksColdAccess(halted, rules, own) ? WRAPPED_OUT_OF_GAS : text;
};
