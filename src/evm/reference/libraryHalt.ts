import { EVMError } from "@ethereumjs/evm";
import {
  ADDRESS_COLLISION,
  CODE_STORE_OUT_OF_GAS,
  CODE_TOO_LARGE,
  formatCodeStore,
  formatOutOfGas,
  formatOverflow,
  formatUndefinedOpcode,
  formatUnderflow,
  type HaltedFrame,
  INIT_CODE_TOO_LARGE,
  INSUFFICIENT_BALANCE,
  INVALID_CODE,
  INVALID_JUMP,
  RETURN_DATA_OUT_OF_BOUNDS,
  WRITE_PROTECTION,
} from "../halts/haltText.ts";

const { errorMessages } = EVMError;

/** geth's error texts by the library's. */
const HALTS = new Map<string, string>([
  [errorMessages.CODESTORE_OUT_OF_GAS, CODE_STORE_OUT_OF_GAS],
  [errorMessages.CODESIZE_EXCEEDS_MAXIMUM, CODE_TOO_LARGE],
  [errorMessages.OUT_OF_RANGE, RETURN_DATA_OUT_OF_BOUNDS],
  [errorMessages.STATIC_STATE_CHANGE, WRITE_PROTECTION],
  [errorMessages.CREATE_COLLISION, ADDRESS_COLLISION],
  [errorMessages.INSUFFICIENT_BALANCE, INSUFFICIENT_BALANCE],
  [errorMessages.INVALID_BYTECODE_RESULT, INVALID_CODE],
  [errorMessages.INITCODE_SIZE_VIOLATION, INIT_CODE_TOO_LARGE],
]);

/** The frame that failed, after its last opcode. */
export interface Failed extends HaltedFrame {
  readonly stack: { readonly length: number; peek(count: number): bigint[] };
  readonly returnBytes: Uint8Array;
  /** Set after the frame has returned. */
  readonly returnValue?: Uint8Array | undefined;
}

/** Returns geth's text for the error that halted a message. */
export const formatHalt = (error: EVMError, failed: Failed | undefined): string => {
  // The library appends the position.
  if (error.error.startsWith(errorMessages.INVALID_JUMP)) {
    return INVALID_JUMP;
  }
  return (failed && describeByFrame(error, failed)) ?? HALTS.get(error.error) ?? error.error;
};

const describeByFrame = (error: EVMError, failed: Failed): string | undefined => {
  const { opCode, stack, returnValue } = failed;
  switch (error.error) {
    case errorMessages.INVALID_OPCODE:
      return formatUndefinedOpcode(opCode);
    case errorMessages.STACK_UNDERFLOW:
      return formatUnderflow(failed);
    case errorMessages.STACK_OVERFLOW:
      return formatOverflow(stack.length);
    case errorMessages.OUT_OF_GAS:
      // The frame returned code, and there was no gas left to store it.
      return returnValue?.length ? formatCodeStore(returnValue[0]) : formatOutOfGas(failed);
    default:
      return undefined;
  }
};
