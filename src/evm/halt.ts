import { EVMError } from "@ethereumjs/evm";

const { errorMessages } = EVMError;
const STACK_LIMIT = 1024;
const INVALID = 0xfe;

/** geth's words (core/vm/errors.go) for the library's. */
const HALTS = new Map<string, string>([
  [errorMessages.CODESTORE_OUT_OF_GAS, "contract creation code storage out of gas"],
  [errorMessages.CODESIZE_EXCEEDS_MAXIMUM, "max code size exceeded"],
  [errorMessages.INVALID_JUMP, "invalid jump destination"],
  [errorMessages.OUT_OF_RANGE, "return data out of bounds"],
  [errorMessages.STATIC_STATE_CHANGE, "write protection"],
  [errorMessages.CREATE_COLLISION, "contract address collision"],
  [errorMessages.INSUFFICIENT_BALANCE, "insufficient balance for transfer"],
  [errorMessages.INVALID_BYTECODE_RESULT, "invalid code: must not begin with 0xef"],
  [errorMessages.INITCODE_SIZE_VIOLATION, "max initcode size exceeded"],
]);

interface Failed {
  readonly opCode: number;
  readonly stack: { readonly length: number };
}

/** What stopped a message, as geth words it. */
export const describeHalt = (error: EVMError, failed: Failed | undefined): string => {
  if (failed !== undefined) {
    if (error.error === errorMessages.INVALID_OPCODE) return `invalid opcode: ${opcodeName(failed.opCode)}`;
    if (error.error === errorMessages.STACK_UNDERFLOW) {
      return `stack underflow (${failed.stack.length} <=> ${inputs(failed.opCode)})`;
    }
    if (error.error === errorMessages.STACK_OVERFLOW) {
      return `stack limit reached ${failed.stack.length} (${STACK_LIMIT - 1})`;
    }
  }
  return HALTS.get(error.error) ?? error.error;
};

const opcodeName = (opCode: number): string =>
  opCode === INVALID ? "INVALID" : `opcode 0x${opCode.toString(16)} not defined`;

/** How many words each opcode takes: Yellow Paper, appendix H.2, and later EIPs. */
const INPUTS: readonly (readonly [from: number, to: number, inputs: number])[] = [
  [0x01, 0x07, 2],
  [0x08, 0x09, 3],
  [0x0a, 0x0b, 2],
  [0x10, 0x14, 2],
  [0x15, 0x15, 1],
  [0x16, 0x18, 2],
  [0x19, 0x19, 1],
  [0x1a, 0x1d, 2],
  [0x1e, 0x1e, 1],
  [0x20, 0x20, 2],
  [0x31, 0x31, 1],
  [0x35, 0x35, 1],
  [0x37, 0x37, 3],
  [0x39, 0x39, 3],
  [0x3b, 0x3b, 1],
  [0x3c, 0x3c, 4],
  [0x3e, 0x3e, 3],
  [0x3f, 0x40, 1],
  [0x49, 0x49, 1],
  [0x50, 0x51, 1],
  [0x52, 0x53, 2],
  [0x54, 0x54, 1],
  [0x55, 0x55, 2],
  [0x56, 0x56, 1],
  [0x57, 0x57, 2],
  [0x5c, 0x5c, 1],
  [0x5d, 0x5d, 2],
  [0x5e, 0x5e, 3],
  [0xf0, 0xf0, 3],
  [0xf1, 0xf2, 7],
  [0xf3, 0xf3, 2],
  [0xf4, 0xf4, 6],
  [0xf5, 0xf5, 4],
  [0xfa, 0xfa, 6],
  [0xfd, 0xfd, 2],
  [0xff, 0xff, 1],
];

const inputs = (opCode: number): number => {
  if (opCode >= 0x80 && opCode <= 0x8f) return opCode - 0x7f;
  if (opCode >= 0x90 && opCode <= 0x9f) return opCode - 0x8e;
  if (opCode >= 0xa0 && opCode <= 0xa4) return opCode - 0x9e;
  return INPUTS.find(([from, to]) => opCode >= from && opCode <= to)?.[2] ?? 0;
};
