import { EVMError } from "@ethereumjs/evm";
import { inputsOf, memoryAccesses, nameOfUndefined, RETURNDATACOPY } from "./opcodes.ts";

const { errorMessages } = EVMError;
const STACK_LIMIT = 1024;
const UINT64 = 2n ** 64n;
const WORD_BYTES = 32n;
/** The largest memory that geth prices. Source: geth, core/vm/gas_table.go, memoryGasCost. */
const MAX_PRICED_MEMORY = 0x1f_ffff_ffe0n;
const FORMAT_PREFIX = 0xef;

const OUT_OF_GAS = "out of gas";
const GAS_OVERFLOW = "gas uint64 overflow";
const CODE_STORE_OUT_OF_GAS = "contract creation code storage out of gas";
const INVALID_CODE = "invalid code: must not begin with 0xef";
const RETURN_DATA_OUT_OF_BOUNDS = "return data out of bounds";
/** A creation by an account whose nonce cannot be incremented (EIP-2681). */
export const NONCE_OVERFLOW = "nonce uint64 overflow";

/** geth's error texts by the library's. Source: geth, core/vm/errors.go. */
const HALTS = new Map<string, string>([
  [errorMessages.CODESTORE_OUT_OF_GAS, CODE_STORE_OUT_OF_GAS],
  [errorMessages.CODESIZE_EXCEEDS_MAXIMUM, "max code size exceeded"],
  [errorMessages.OUT_OF_RANGE, RETURN_DATA_OUT_OF_BOUNDS],
  [errorMessages.STATIC_STATE_CHANGE, "write protection"],
  [errorMessages.CREATE_COLLISION, "contract address collision"],
  [errorMessages.INSUFFICIENT_BALANCE, "insufficient balance for transfer"],
  [errorMessages.INVALID_BYTECODE_RESULT, INVALID_CODE],
  [errorMessages.INITCODE_SIZE_VIOLATION, "max initcode size exceeded"],
]);

/** The frame that failed, after its last opcode. */
export interface Failed {
  readonly opCode: number;
  readonly stack: { readonly length: number; peek(count: number): bigint[] };
  readonly gasLeft: bigint;
  readonly returnBytes: Uint8Array;
  readonly memoryWordCount: bigint;
  readonly highestMemCost: bigint;
  /** Set after the frame has returned. */
  readonly returnValue?: Uint8Array | undefined;
}

/** Returns geth's text for the error that halted a message. */
export const formatHalt = (error: EVMError, failed: Failed | undefined): string => {
  // The library appends the position.
  if (error.error.startsWith(errorMessages.INVALID_JUMP)) {
    return "invalid jump destination";
  }
  return (failed && describeByFrame(error, failed)) ?? HALTS.get(error.error) ?? error.error;
};

const describeByFrame = (error: EVMError, failed: Failed): string | undefined => {
  const { opCode, stack, returnValue } = failed;
  switch (error.error) {
    case errorMessages.INVALID_OPCODE:
      return `invalid opcode: ${nameOfUndefined(opCode)}`;
    case errorMessages.STACK_UNDERFLOW:
      return describeUnderflow(failed);
    case errorMessages.STACK_OVERFLOW:
      return `stack limit reached ${stack.length} (${STACK_LIMIT - 1})`;
    case errorMessages.OUT_OF_GAS:
      return returnValue?.length ? describeDeposit(returnValue) : describeOutOfGas(failed);
    default:
      return undefined;
  }
};

const describeUnderflow = ({ opCode, stack }: Failed): string =>
  `stack underflow (${stack.length} <=> ${inputsOf(opCode)})`;

/** The frame returned code, and there was no gas left to store it. */
const describeDeposit = ([first]: Uint8Array): string =>
  first === FORMAT_PREFIX ? INVALID_CODE : CODE_STORE_OUT_OF_GAS;

/** Checks in geth's order: the stack, the memory's size, its price, then the opcode's own checks. Source: geth, core/vm/interpreter.go. */
const describeOutOfGas = (failed: Failed): string => {
  const { opCode, stack, returnBytes } = failed;
  const inputs = inputsOf(opCode);
  if (stack.length < inputs) {
    return describeUnderflow(failed);
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
  return isOutside && copyGas(failed, ends[0] ?? 0n, length) <= failed.gasLeft ? RETURN_DATA_OUT_OF_BOUNDS : OUT_OF_GAS;
};

const COPY_BASE_GAS = 3n;
const COPY_WORD_GAS = 3n;
const MEMORY_WORD_GAS = 3n;
const MEMORY_QUADRATIC_DIVISOR = 512n;

/** Returns the cost of a copy into memory up to `end`. */
const copyGas = ({ memoryWordCount, highestMemCost }: Failed, end: bigint, length: bigint): bigint => {
  const copied = COPY_BASE_GAS + wordsOf(length) * COPY_WORD_GAS;
  const words = wordsOf(end);
  if (words <= memoryWordCount) {
    return copied;
  }
  return copied + words * MEMORY_WORD_GAS + (words * words) / MEMORY_QUADRATIC_DIVISOR - highestMemCost;
};

const wordsOf = (bytes: bigint): bigint => (bytes + WORD_BYTES - 1n) / WORD_BYTES;
