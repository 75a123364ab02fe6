import type { Address } from "../../ethereum/hex.ts";
import { isForkActive, type Rules } from "../../ethereum/rules.ts";
import { formatOutOfGas, formatUnderflow, GAS_OVERFLOW, type HaltedFrame, OUT_OF_GAS } from "./haltText.ts";
import { calledAddress, inputsOf } from "./opcodes.ts";

// geth charges a constant for each opcode, and then computes the rest of its price. An error of that computation is wrapped.
// Source: geth, core/vm/interpreter.go, chargeDynamicGas.

const WRAPPED_OUT_OF_GAS = `${OUT_OF_GAS}: ${OUT_OF_GAS}`;
const WARM_ACCESS_GAS = 100n;
/** EIP-2929 */
const COLD_ACCESS_GAS = 2_600n;
/** EIP-8038 */
const AMSTERDAM_COLD_ACCESS_GAS = 3_000n;
const CREATE_GAS = 32_000n;
/** EIP-8037 */
const AMSTERDAM_CREATE_GAS = 12_000n;
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
    return isForkActive(rules, "amsterdam") ? AMSTERDAM_CREATE_GAS : CREATE_GAS;
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
  const cold = isForkActive(rules, "amsterdam") ? AMSTERDAM_COLD_ACCESS_GAS : COLD_ACCESS_GAS;
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
