import { Common, Mainnet } from "@ethereumjs/common";
import { EVM } from "@ethereumjs/evm";
import { concatBytes, numberBytes } from "../../../src/ethereum/rlp.ts";
import { inputsOf } from "../../../src/evm/halts/opcodes.ts";
import { Assembler } from "./assembler.ts";
import { PRECOMPILE_INPUTS } from "./precompileInputs.ts";

/** A program that repeats one opcode or one precompile until its gas is used up. */
export interface LoopProgram {
  readonly name: string;
  readonly code: Uint8Array;
  readonly input: Uint8Array;
  /** Code of the contract that the program calls, if it calls one. */
  readonly callee: Uint8Array;
}

/** The contract that a program may call. */
export const CALLEE = 0xca11eebn;
const CALLEE_GAS = 10_000n;
const NOTHING = new Uint8Array(0);
const STOP = Uint8Array.of(0x00);
const MAX_WORD = (1n << 256n) - 1n;
const CHUNK = 4_096n;

const GAS = "GAS";
const MSIZE = "MSIZE";
const OPCODES = { [GAS]: 0x5a, [MSIZE]: 0x59 } as const;
/** An operand: a constant, or an opcode that gives a new word each time. */
type Operand = bigint | keyof typeof OPCODES;

/** Opcodes that end a frame. A program calls a contract that ends with them. */
const ENDS: ReadonlySet<number> = new Set([0x00, 0xf3, 0xfd, 0xfe, 0xff]);
const JUMP = 0x56;
const JUMPI = 0x57;
const JUMPDEST = 0x5b;
const WITHOUT_RESULT: ReadonlySet<number> = new Set([
  ...[0x37, 0x39, 0x3c, 0x3e, 0x50, 0x52, 0x53, 0x55, JUMPDEST, 0x5d, 0x5e],
  ...[0xa0, 0xa1, 0xa2, 0xa3, 0xa4],
]);

/** Operands, first the top of the stack. The others are the largest word. */
const OPERANDS: ReadonlyMap<number, readonly Operand[]> = new Map<number, readonly Operand[]>([
  [0x20, [0n, CHUNK]],
  [0x31, [CALLEE]],
  [0x37, [0n, 0n, CHUNK]],
  [0x39, [0n, 0n, CHUNK]],
  [0x3b, [CALLEE]],
  [0x3c, [CALLEE, 0n, 0n, CHUNK]],
  [0x3e, [0n, 0n, 0n]],
  [0x3f, [CALLEE]],
  [0x40, [0n]],
  [0x51, [MSIZE]],
  [0x52, [MSIZE, 1n]],
  [0x53, [MSIZE, 1n]],
  [0x54, [1n]],
  [0x55, [GAS, 1n]],
  [0x5c, [GAS]],
  [0x5d, [GAS, 1n]],
  [0x5e, [0n, 1n, CHUNK]],
  ...[0, 1, 2, 3, 4].map((topics) => [0xa0 + topics, [0n, 32n, 1n, 2n, 3n, 4n]] as const),
  [0xf0, [0n, 0n, 0n]],
  [0xf1, [CALLEE_GAS, CALLEE, 0n, 0n, 0n, 0n, 0n]],
  [0xf2, [CALLEE_GAS, CALLEE, 0n, 0n, 0n, 0n, 0n]],
  [0xf4, [CALLEE_GAS, CALLEE, 0n, 0n, 0n, 0n]],
  [0xf5, [0n, 0n, 0n, GAS]],
  [0xfa, [CALLEE_GAS, CALLEE, 0n, 0n, 0n, 0n]],
  [0xf3, [0n, 0n]],
  [0xfd, [0n, 0n]],
  [0xff, [CALLEE]],
]);

const pushOperands = (code: Assembler, opCode: number): void => {
  const inputs = inputsOf(opCode);
  const operands = OPERANDS.get(opCode) ?? [];
  for (let at = inputs - 1; at >= 0; at--) {
    const operand = operands[at] ?? MAX_WORD;
    if (typeof operand === "bigint") {
      code.push(operand);
    } else {
      code.op(OPCODES[operand]);
    }
  }
};

const PUSH_FIRST = 0x60;
const PUSH_LAST = 0x7f;
const DUP_FIRST = 0x80;
const SWAP_FIRST = 0x90;
const SWAP_LAST = 0x9f;

const outputsOf = (opCode: number): number => {
  if (opCode >= DUP_FIRST && opCode < SWAP_FIRST) {
    return inputsOf(opCode) + 1;
  }
  if (opCode >= SWAP_FIRST && opCode <= SWAP_LAST) {
    return inputsOf(opCode);
  }
  return WITHOUT_RESULT.has(opCode) ? 0 : 1;
};

const forever = (body: (code: Assembler) => void): Uint8Array => {
  const code = new Assembler();
  code.op(JUMPDEST);
  body(code);
  code.push(0n);
  code.op(JUMP);
  return code.bytes();
};

const loopOf = (opCode: number): Pick<LoopProgram, "code" | "callee"> => {
  if (ENDS.has(opCode)) {
    const callee = new Assembler();
    pushOperands(callee, opCode);
    callee.op(opCode);
    return { ...loopOf(0xf1), callee: callee.bytes() };
  }
  const code = forever((assembler) => {
    if (opCode === JUMPI) {
      assembler.push(1n);
      assembler.push(0n);
      assembler.op(JUMPI);
    } else if (opCode !== JUMP) {
      pushOperands(assembler, opCode);
      assembler.op(opCode);
      if (opCode >= PUSH_FIRST && opCode <= PUSH_LAST) {
        assembler.op(...new Uint8Array(opCode - PUSH_FIRST + 1).fill(1));
      }
      assembler.op(...Array.from({ length: outputsOf(opCode) }, () => 0x50));
    }
  });
  return { code, callee: STOP };
};

/** Calls a precompile with the call's input. */
const callsPrecompile = (address: bigint): Uint8Array => {
  const code = new Assembler();
  // CALLDATACOPY of everything.
  code.op(0x36);
  code.push(0n);
  code.push(0n);
  code.op(0x37);
  const start = code.bytes().length;
  code.op(JUMPDEST);
  code.push(0n);
  code.push(0n);
  code.op(0x36);
  code.push(0n);
  code.push(address);
  code.op(0x5a, 0xfa, 0x50);
  code.push(BigInt(start));
  code.op(JUMP);
  return code.bytes();
};

const word = (value: number): Uint8Array => {
  const bytes = new Uint8Array(32);
  bytes.set(numberBytes(BigInt(value)), 32 - numberBytes(BigInt(value)).length);
  return bytes;
};
const filled = (length: number, byte: number): Uint8Array => new Uint8Array(length).fill(byte);
const OPERAND_BYTES = 1_024;
const ROUNDS = Uint8Array.of(0x00, 0xff, 0xff, 0xff);

/** The loop that takes longest. Each call has 16 million rounds. */
export const SLOW_LOOP = "blake2f";

/** Inputs that take longer than those of the fuzz. */
const HEAVY: readonly (readonly [name: string, address: number, input: Uint8Array])[] = [
  ["sha256 of 64 KiB", 2, filled(65_536, 7)],
  ["ripemd160 of 64 KiB", 3, filled(65_536, 7)],
  ["identity of 64 KiB", 4, filled(65_536, 7)],
  [
    "modexp of 1 KiB",
    5,
    concatBytes([
      ...[1, 2, 3].map(() => word(OPERAND_BYTES)),
      ...[0xff, 0xfe, 0xfd].map((byte) => filled(OPERAND_BYTES, byte)),
    ]),
  ],
  [SLOW_LOOP, 9, concatBytes([ROUNDS, filled(208, 3), Uint8Array.of(1)])],
];

const variants: readonly LoopProgram[] = [
  { name: "SLOAD of new slots", code: forever((code) => code.op(0x5a, 0x54, 0x50)), callee: STOP, input: NOTHING },
  { name: "BALANCE of new accounts", code: forever((code) => code.op(0x5a, 0x31, 0x50)), callee: STOP, input: NOTHING },
  { name: "memory growth", code: forever((code) => code.op(0x60, 0x01, 0x59, 0x52)), callee: STOP, input: NOTHING },
  {
    name: "calls as deep as they go",
    code: forever((code) => code.op(0x5f, 0x5f, 0x5f, 0x5f, 0x5f, 0x30, 0x5a, 0xf1, 0x50)),
    callee: STOP,
    input: NOTHING,
  },
];

/** A loop for each opcode of Osaka, each precompile with each of its inputs, and some heavier variants. */
export const loopPrograms = (): LoopProgram[] => {
  const common = new Common({ chain: Mainnet, hardfork: "osaka" });
  const opcodes = [...new EVM({ common }).getActiveOpcodes()].map(([opCode, { fullName }]) => ({
    name: fullName,
    input: NOTHING,
    ...loopOf(opCode),
  }));
  const precompiles = PRECOMPILE_INPUTS.map(({ address, input }, at) => ({
    name: `precompile ${address.toString(16)}, input ${at}`,
    code: callsPrecompile(address),
    callee: STOP,
    input,
  }));
  const heavy = HEAVY.map(([name, address, input]) => ({
    name,
    code: callsPrecompile(BigInt(address)),
    callee: STOP,
    input,
  }));
  return [...heavy, ...variants, ...precompiles, ...opcodes];
};
