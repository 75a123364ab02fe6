import type { Address as AddressBytes } from "@ethereumjs/util";
import { ENVIRONMENT_OPCODES, type EnvironmentOpcode } from "../../core/readSet.ts";
import { type Address, formatData, formatWord, type Hash } from "../../ethereum/hex.ts";
import type { BlockEnvironment } from "../engine.ts";
import { inputsOf } from "../halts/opcodes.ts";
import type { ReadRecorder } from "../readRecorder.ts";

const ANCESTORS = 256n;

/** An opcode that is about to run, before its gas is charged. */
export interface LibraryStep {
  /** In this fork. */
  readonly name: string;
  readonly opCode: number;
  readonly stack: { readonly length: number; peek(count: number): bigint[] };
  /** The account whose state the frame uses. */
  readonly own: AddressBytes;
}

/** Where a step is recorded. */
export interface StepContext {
  readonly reads: ReadRecorder;
  readonly block: BlockEnvironment;
  /** EIP-161 made the price of a call depend on emptiness, and only with value. Before, it depended on existence. */
  readonly hasEip161: boolean;
}

interface Step extends StepContext {
  /** The account whose state the frame uses. */
  readonly own: Address;
  /** Returns a word of the stack. The top is 0. */
  operand(position: number): bigint;
}

type Rule = (step: Step) => void;

const addressAt = ({ operand }: Step, position: number): Address =>
  `0x${BigInt.asUintN(160, operand(position)).toString(16).padStart(40, "0")}`;

const readsSlot: Rule = ({ reads, own, operand }) => {
  const slot: Hash = formatWord(operand(0));
  reads.slot(own, slot);
};

const readsCode =
  (position: number): Rule =>
  (step) =>
    step.reads.account(addressAt(step, position), "code");

/** A payment of zero needs no balance. */
const pays = ({ reads, own }: Step, value: bigint): void => {
  if (value > 0n) {
    reads.account(own, "balance");
  }
};

const creates: Rule = (step) => {
  step.reads.account(step.own, "nonce");
  pays(step, step.operand(0));
};

/** By the library's names, which it gives only to opcodes of the fork. */
const RULES: ReadonlyMap<string, Rule> = new Map<string, Rule>([
  ["BALANCE", (step) => step.reads.account(addressAt(step, 0), "balance")],
  ["SELFBALANCE", ({ reads, own }) => reads.account(own, "balance")],
  ["EXTCODESIZE", readsCode(0)],
  ["EXTCODECOPY", readsCode(0)],
  ["EXTCODEHASH", (step) => step.reads.account(addressAt(step, 0), "code", "emptiness")],
  ["SLOAD", readsSlot],
  ["SSTORE", readsSlot],
  ["CREATE", creates],
  ["CREATE2", creates],
  [
    "CALL",
    (step) => {
      const value = step.operand(2);
      step.reads.account(addressAt(step, 1), "code");
      pays(step, value);
      if (value > 0n || !step.hasEip161) {
        step.reads.account(addressAt(step, 1), "emptiness");
      }
    },
  ],
  [
    "CALLCODE",
    (step) => {
      step.reads.account(addressAt(step, 1), "code");
      pays(step, step.operand(2));
    },
  ],
  ["DELEGATECALL", readsCode(1)],
  ["STATICCALL", readsCode(1)],
  [
    "SELFDESTRUCT",
    (step) => {
      step.reads.account(step.own, "balance");
      step.reads.account(addressAt(step, 0), "emptiness");
    },
  ],
  [
    "BLOCKHASH",
    ({ reads, block, operand }) => {
      const number = operand(0);
      if (number < block.number && number >= block.number - ANCESTORS) {
        reads.blockHash(number);
      }
    },
  ],
]);

const PREVRANDAO_BEFORE = "DIFFICULTY";
const isEnvironment = (name: string): name is EnvironmentOpcode => Object.hasOwn(ENVIRONMENT_OPCODES, name);

/** The names of all opcodes that read state or environment. */
export const READING_OPCODES: ReadonlySet<string> = new Set([
  ...RULES.keys(),
  ...Object.keys(ENVIRONMENT_OPCODES),
  PREVRANDAO_BEFORE,
]);

/** Records what the next opcode reads, if the stack has its operands. */
export const recordStep = ({ name, opCode, stack, own }: LibraryStep, context: StepContext): void => {
  const inputs = inputsOf(opCode);
  if (stack.length < inputs) {
    return;
  }
  const operands = stack.peek(inputs);
  const opcode = name === PREVRANDAO_BEFORE ? "PREVRANDAO" : name;
  if (isEnvironment(opcode)) {
    context.reads.environment(opcode);
  }
  RULES.get(name)?.({ ...context, own: formatData(own.bytes), operand: (position) => operands[position] ?? 0n });
};
