import { nameOfUndefined } from "./opcodes.ts";

const DUPN = 0xe6;
export const SWAPN = 0xe7;
const EXCHANGE = 0xe8;

/** Whether the byte after the opcode decides which words it takes: DUPN, SWAPN, EXCHANGE (EIP-8024). `inputsOf` has the minimum. */
export const hasOperand = (opCode: number): boolean => opCode >= DUPN && opCode <= EXCHANGE;

/** Returns geth's text for an operand that is forbidden, or that names a word which the stack lacks. Source: geth, core/vm/instructions.go. */
export const formatOperand = (opCode: number, operand: number, stackLength: number): string =>
  isForbidden(opCode, operand)
    ? `invalid opcode: ${nameOfUndefined(opCode)} (operand: 0x${operand.toString(16).padStart(2, "0")})`
    : `stack underflow (${stackLength} <=> ${neededWords(opCode, operand)})`;

/** These bytes are JUMPDEST and PUSH opcodes, which analyses of old code find. EXCHANGE has fewer operands. */
const isForbidden = (opCode: number, operand: number): boolean =>
  operand > (opCode === EXCHANGE ? 0x51 : 0x5a) && operand < 0x80;

const neededWords = (opCode: number, operand: number): number => {
  switch (opCode) {
    case DUPN:
      return decodeSingle(operand);
    case SWAPN:
      return decodeSingle(operand) + 1;
    default:
      return Math.max(...decodePair(operand)) + 1;
  }
};

const decodeSingle = (operand: number): number => (operand + 145) % 256;

const decodePair = (operand: number): readonly [number, number] => {
  const cell = operand ^ 143;
  const [row, column] = [cell >> 4, cell & 15];
  return row < column ? [row + 1, column + 1] : [column + 1, 29 - row];
};
