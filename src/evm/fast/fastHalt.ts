import { larger } from "../../ethereum/bigintOrder.ts";
import type { Address } from "../../ethereum/hex.ts";
import { isForkActive, type Rules } from "../../ethereum/rules.ts";
import { forkNumbers } from "../checks/forkNumbers.ts";
import {
  ADDRESS_COLLISION,
  CODE_TOO_LARGE,
  FORMAT_PREFIX,
  formatCodeStore,
  formatOutOfGas,
  formatOverflow,
  formatPriceOutOfGas,
  formatUndefinedOpcode,
  formatUnderflow,
  type HaltedFrame,
  INIT_CODE_TOO_LARGE,
  INSUFFICIENT_BALANCE,
  INVALID_CODE,
  INVALID_JUMP,
  lacksConstantGas,
  memoryGas,
  NONCE_OVERFLOW,
  OUT_OF_GAS,
  REENTRANCY_SENTRY,
  STACK_LIMIT,
  WRITE_PROTECTION,
  wordsOf,
} from "../halts/haltText.ts";
import { formatOperand, hasOperand, inputsOf, SWAPN } from "../halts/opcodes.ts";
import { describePrecompileFault, type RejectedInput } from "../halts/precompileFault.ts";
import type { LastStep, ModuleResult } from "./fastResult.ts";

// Source: revm-interpreter, InstructionResult.
const OUT_OF_FUNDS = 0x12;
const FIRST_OUT_OF_GAS = 0x20;
const SENTRY_OUT_OF_GAS = 0x25;
const OPCODE_NOT_FOUND = 0x26;
const CALL_IN_STATIC = 0x27;
const WRITE_IN_STATIC = 0x28;
const INVALID_FE = 0x29;
const BAD_JUMP = 0x2a;
const NOT_ACTIVATED = 0x2b;
const STACK_UNDERFLOW = 0x2c;
const STACK_OVERFLOW = 0x2d;
const OUT_OF_OFFSET = 0x2e;
const CREATE_COLLISION = 0x2f;
const PRECOMPILE_ERROR = 0x31;
const NONCE_TOO_LARGE = 0x32;
const CODE_SIZE_LIMIT = 0x33;
const CODE_PREFIX = 0x34;
const INIT_CODE_SIZE_LIMIT = 0x35;
const INVALID_OPERAND = 0x37;

const TEXTS: ReadonlyMap<number, string> = new Map([
  [OUT_OF_FUNDS, INSUFFICIENT_BALANCE],
  [CALL_IN_STATIC, WRITE_PROTECTION],
  [WRITE_IN_STATIC, WRITE_PROTECTION],
  [BAD_JUMP, INVALID_JUMP],
  [CREATE_COLLISION, ADDRESS_COLLISION],
  [SENTRY_OUT_OF_GAS, REENTRANCY_SENTRY],
  [NONCE_TOO_LARGE, NONCE_OVERFLOW],
  [CODE_SIZE_LIMIT, CODE_TOO_LARGE],
  [CODE_PREFIX, INVALID_CODE],
  [INIT_CODE_SIZE_LIMIT, INIT_CODE_TOO_LARGE],
]);

/** Returns geth's text for the error that halted a transaction. `input`: for a precompile that the transaction called. */
export const formatModuleHalt = (
  { code, lastStep, precompileFault }: ModuleResult,
  input: RejectedInput,
  rules: Rules,
): string => {
  if (code === PRECOMPILE_ERROR) {
    return describePrecompileFault(precompileFault, input);
  }
  if (lastStep !== undefined && (code === CODE_SIZE_LIMIT || code === INIT_CODE_SIZE_LIMIT)) {
    return describeSize(code, lastStep, rules);
  }
  const text = TEXTS.get(code);
  if (text !== undefined) {
    return text;
  }
  return lastStep === undefined ? OUT_OF_GAS : formatStep(code, lastStep, { rules, own: input.address });
};

/** The rules of the frame's block, and the account whose code runs. */
interface Place {
  readonly rules: Rules;
  readonly own: Address;
}

const formatStep = (code: number, step: LastStep, place: Place): string => {
  const halted = haltedFrame(step);
  switch (code) {
    case OPCODE_NOT_FOUND:
    case INVALID_FE:
    case NOT_ACTIVATED:
      return formatUndefinedOpcode(step.opCode);
    case STACK_UNDERFLOW:
    case STACK_OVERFLOW:
    case INVALID_OPERAND:
      return describeStack(code, step, halted);
    case OUT_OF_OFFSET:
      // revm compares the bounds before it charges the copy, unlike geth.
      return formatOutOfGas(halted);
    default:
      return code >= FIRST_OUT_OF_GAS && code < SENTRY_OUT_OF_GAS
        ? describeOutOfGas(step, halted, place)
        : `halted: ${code}`;
  }
};

/** geth compares the stack with the opcode's minimum and maximum first. revm also has STACK_OVERFLOW for a DUP of a word that the stack lacks. */
const describeStack = (code: number, { opCode, operand, stackLength }: LastStep, halted: HaltedFrame): string => {
  if (stackLength < inputsOf(opCode)) {
    return formatUnderflow(halted);
  }
  if (!hasOperand(opCode)) {
    return code === STACK_UNDERFLOW ? formatUnderflow(halted) : formatOverflow(stackLength);
  }
  if (opCode < SWAPN && stackLength === STACK_LIMIT) {
    return formatOverflow(stackLength);
  }
  return formatOperand(opCode, operand, stackLength);
};

const RETURN = 0xf3;

/** A frame that returned code runs out of gas when the code is stored. */
const describeOutOfGas = (step: LastStep, halted: HaltedFrame, { rules, own }: Place): string => {
  if (step.opCode === RETURN && step.firstOutputByte !== undefined) {
    return formatCodeStore(step.firstOutputByte);
  }
  return isForkActive(rules, "berlin") ? formatPriceOutOfGas(halted, rules, own) : formatOutOfGas(halted);
};

/** Position of the length among the operands of CREATE and CREATE2. The top is 0. */
const INIT_CODE_LENGTH = 2;
const CODE_BYTE_GAS = 200n;

/** Describes code that is too large. Before Amsterdam, geth charges for the code before it compares its size. */
const describeSize = (code: number, step: LastStep, rules: Rules): string => {
  const halted = haltedFrame(step);
  const limit = forkNumbers(rules).maxCodeBytes;
  if (code === INIT_CODE_SIZE_LIMIT) {
    const size = `${INIT_CODE_TOO_LARGE}: code size ${step.stack[INIT_CODE_LENGTH]} limit ${2n * limit}`;
    return lacksConstantGas(halted, rules) ? OUT_OF_GAS : `${OUT_OF_GAS}: ${size}`;
  }
  const [offset = 0n, length = 0n] = step.stack;
  const left = halted.gasLeft - larger(memoryGas(wordsOf(offset + length)) - halted.highestMemCost, 0n);
  if (step.firstOutputByte === FORMAT_PREFIX || (!isForkActive(rules, "amsterdam") && left < length * CODE_BYTE_GAS)) {
    return formatCodeStore(step.firstOutputByte);
  }
  return `${CODE_TOO_LARGE}: code size ${length} limit ${limit}`;
};

const haltedFrame = ({ opCode, stack, stackLength, gasLeft, returnBytes, memoryBytes }: LastStep): HaltedFrame => {
  const words = wordsOf(memoryBytes);
  return {
    opCode,
    stack: { length: stackLength, peek: (count) => stack.slice(0, count) },
    gasLeft,
    returnBytes: { length: returnBytes },
    memoryWordCount: words,
    highestMemCost: memoryGas(words),
  };
};
