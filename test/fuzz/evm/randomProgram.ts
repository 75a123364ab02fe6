import type { EthereumFork } from "../../../src/ethereum/rules.ts";
import { pick } from "../../support/builders/randomValues.ts";
import { Assembler } from "./assembler.ts";
import { ADDRESS_OPCODES, isSince, WORD_OPCODES } from "./fuzzOpcodes.ts";
import { PRECOMPILE_INPUTS } from "./precompileInputs.ts";

export interface ProgramOptions {
  readonly random: () => number;
  readonly fork: EthereumFork;
  /** Addresses that the program may name: contracts, accounts without code, precompiles, and others. */
  readonly addresses: readonly bigint[];
  /** Slots that the program may read and write. */
  readonly slots: readonly bigint[];
}

const MAX_STATEMENTS = 14;
const MAX_DEPTH = 2;
const MAX_PUSH = 32;
/** More than a call with value to a new account costs. */
const CALL_COST = 36_000n;
const MAX_DUP = 16;
const WORDS = [0n, 1n, 2n, 31n, 32n, 255n, 256n, 1n << 64n, 1n << 128n, 1n << 255n, (1n << 256n) - 1n];
/** Memory stays small most of the time: a huge offset only ends the frame. */
const OFFSETS = [0n, 0n, 1n, 31n, 32n, 64n, 96n, 1_000n];
const LENGTHS = [0n, 1n, 20n, 32n, 33n, 64n, 100n];
const HUGE = [1n << 20n, 1n << 40n, (1n << 256n) - 1n];

type Statement = (program: Program) => void;

/** One random program. Statements leave the stack as they found it, so that long programs run to their end. */
class Program {
  readonly options: ProgramOptions;
  readonly code = new Assembler();
  readonly #depth: number;

  constructor(options: ProgramOptions, depth: number) {
    this.options = options;
    this.#depth = depth;
  }

  get random(): () => number {
    return this.options.random;
  }

  chance(share: number): boolean {
    return this.random() < share;
  }

  has(since: EthereumFork): boolean {
    return isSince(this.options.fork, since);
  }

  build(): Uint8Array {
    const count = 1 + Math.floor(this.random() * MAX_STATEMENTS);
    return this.buildOf(Array.from({ length: count }, () => pick(this.random, STATEMENTS)));
  }

  buildOf(statements: readonly Statement[]): Uint8Array {
    for (const statement of statements) {
      statement(this);
    }
    this.#end();
    return this.code.bytes();
  }

  /** Pushes a word: a constant, or the result of an opcode. */
  word(depth = 0): void {
    if (depth >= MAX_DEPTH || this.chance(0.5)) {
      this.code.push(this.chance(0.5) ? pick(this.random, WORDS) : BigInt(Math.floor(this.random() * 2 ** 32)));
      return;
    }
    const known = WORD_OPCODES.filter(({ since }) => this.has(since));
    const { code, inputs } = pick(this.random, known);
    for (let at = 0; at < inputs; at++) {
      this.word(depth + 1);
    }
    this.code.op(code);
  }

  address(): void {
    this.code.push(
      this.chance(0.95) ? pick(this.random, this.options.addresses) : BigInt(Math.floor(this.random() * 2 ** 40)),
    );
  }

  slot(): void {
    this.code.push(pick(this.random, this.options.slots));
  }

  offset(): void {
    this.code.push(this.chance(0.99) ? pick(this.random, OFFSETS) : pick(this.random, HUGE));
  }

  length(): void {
    this.code.push(this.chance(0.99) ? pick(this.random, LENGTHS) : pick(this.random, HUGE));
  }

  /** Pushes the gas of a call: all, or little. Before EIP-150, a call cannot have all gas. */
  gas(): void {
    if (this.chance(0.7)) {
      if (!this.has("tangerineWhistle")) {
        this.code.push(CALL_COST);
        this.code.op(0x5a, 0x03);
        return;
      }
      this.code.op(0x5a);
    } else {
      this.code.push(BigInt(Math.floor(this.random() * 40_000)));
    }
  }

  /** A program that is created or run by this one. */
  nested(): Uint8Array {
    return new Program(this.options, this.#depth + 1).build();
  }

  get isNested(): boolean {
    return this.#depth >= MAX_DEPTH;
  }

  /** Keeps or drops the word on the stack. */
  use(): void {
    const roll = this.random();
    if (roll < 0.4) {
      this.code.op(0x50);
    } else if (roll < 0.7) {
      this.offset();
      this.code.op(0x52);
    } else if (roll < 0.85) {
      this.slot();
      this.code.op(0x55);
    } else {
      this.offset();
      this.code.op(0x53);
    }
  }

  #end(): void {
    const roll = this.random();
    if (roll < 0.25) {
      this.code.op(0x00);
    } else if (roll < 0.75) {
      this.code.push(pick(this.random, LENGTHS));
      this.code.push(pick(this.random, OFFSETS));
      this.code.op(roll > 0.68 && this.has("byzantium") ? 0xfd : 0xf3);
    } else if (roll < 0.83) {
      this.address();
      this.code.op(0xff);
    } else if (roll < 0.85) {
      this.code.op(pick(this.random, [0xfe, 0x0c, 0x21, 0xb0, 0xef]));
    }
  }
}

const wordResult: Statement = (program) => {
  program.word();
  program.use();
};

const addressResult: Statement = (program) => {
  const { code } = pick(
    program.random,
    ADDRESS_OPCODES.filter(({ since }) => program.has(since)),
  );
  program.address();
  program.code.op(code);
  program.use();
};

/** The hash of a block near the first or the last that has one. */
const ancestor: Statement = (program) => {
  program.code.push(pick(program.random, [0n, 1n, 2n, 255n, 256n, 257n]));
  program.code.op(0x43, 0x03, 0x40);
  program.use();
};

const load: Statement = (program) => {
  const roll = program.random();
  if (roll < 0.4) {
    program.slot();
    program.code.op(0x54);
  } else if (roll < 0.6 && program.has("cancun")) {
    program.slot();
    program.code.op(0x5c);
  } else if (roll < 0.8) {
    program.length();
    program.offset();
    program.code.op(0x20);
  } else {
    program.offset();
    program.code.op(0x51);
  }
  program.use();
};

const store: Statement = (program) => {
  program.code.push(program.chance(0.3) ? 0n : BigInt(Math.floor(program.random() * 4)));
  program.slot();
  program.code.op(program.has("cancun") && program.chance(0.3) ? 0x5d : 0x55);
};

/** CALLDATACOPY, CODECOPY, RETURNDATACOPY, EXTCODECOPY, MCOPY. */
const copy: Statement = (program) => {
  program.length();
  program.offset();
  program.offset();
  const roll = program.random();
  if (roll < 0.2 && program.has("cancun")) {
    program.code.op(0x5e);
  } else if (roll < 0.3 && program.has("byzantium")) {
    program.code.op(0x3e);
  } else if (roll < 0.5) {
    program.address();
    program.code.op(0x3c);
  } else {
    program.code.op(roll < 0.75 ? 0x37 : 0x39);
  }
};

const log: Statement = (program) => {
  const topics = Math.floor(program.random() * 5);
  for (let at = 0; at < topics; at++) {
    program.word(1);
  }
  program.length();
  program.offset();
  program.code.op(0xa0 + topics);
};

/** CALL, CALLCODE, DELEGATECALL, STATICCALL. */
const call: Statement = (program) => {
  const kinds = [
    0xf1,
    0xf1,
    0xf2,
    ...(program.has("homestead") ? [0xf4] : []),
    ...(program.has("byzantium") ? [0xfa] : []),
  ];
  const kind = pick(program.random, kinds);
  program.length();
  program.offset();
  program.length();
  program.offset();
  if (kind === 0xf1 || kind === 0xf2) {
    program.code.push(program.chance(0.6) ? 0n : BigInt(Math.floor(program.random() * 100)));
  }
  program.address();
  program.gas();
  program.code.op(kind);
  program.use();
};

/** A call of a precompile with an input that it accepts. */
const precompile: Statement = (program) => {
  const { address, input, since } = pick(program.random, PRECOMPILE_INPUTS);
  if (!program.has(since)) {
    return;
  }
  program.code.data(input, 0n);
  program.code.push(64n);
  program.code.push(0n);
  program.code.push(BigInt(input.length));
  program.code.push(0n);
  program.code.push(0n);
  program.code.push(address);
  program.gas();
  program.code.op(0xf1);
  program.use();
};

/** CREATE and CREATE2, of init code that may return code. */
const create: Statement = (program) => {
  if (program.isNested) {
    return wordResult(program);
  }
  const init = program.nested();
  program.code.data(init, 0n);
  const isSecond = program.has("constantinople") && program.chance(0.5);
  if (isSecond) {
    program.code.push(BigInt(Math.floor(program.random() * 3)));
  }
  program.code.push(BigInt(init.length));
  program.code.push(0n);
  program.code.push(program.chance(0.8) ? 0n : 1n);
  program.code.op(isSecond ? 0xf5 : 0xf0);
  if (program.chance(0.5)) {
    return program.use();
  }
  // Calls the new contract.
  for (const word of [0n, 0n, 0n, 0n, 0n]) {
    program.code.push(word);
  }
  program.code.op(0x85);
  program.gas();
  program.code.op(0xf1);
  program.code.op(0x50);
  program.code.op(0x50);
};

/** PUSH, DUP and SWAP of a random size. */
const stack: Statement = (program) => {
  stackOf(program, 1 + Math.floor(program.random() * MAX_DUP));
};

const stackOf = (program: Program, size: number): void => {
  for (let at = 0; at <= size; at++) {
    program.code.push(BigInt(at), 1 + Math.floor(program.random() * 32));
  }
  program.code.op(0x7f + size);
  program.code.op(0x8f + size);
  for (let at = 0; at <= size + 1; at++) {
    program.code.op(0x50);
  }
};

/** A jump over bytes that are not code, or a loop that counts down. */
const jump: Statement = (program) => {
  if (program.chance(0.5)) {
    const skipped = Uint8Array.from({ length: Math.floor(program.random() * 5) }, () =>
      Math.floor(program.random() * 256),
    );
    program.code.jumpOver(skipped, program.chance(0.5));
    return;
  }
  program.code.loop(1 + Math.floor(program.random() * 5), () => {
    wordResult(program);
  });
};

const soup: Statement = (program) => {
  if (program.chance(0.1)) {
    program.code.op(Math.floor(program.random() * 256));
  }
};

/** Every opcode on words once, and every size of PUSH, DUP and SWAP. */
const survey: Statement = (program) => {
  for (const { code, inputs } of WORD_OPCODES.filter(({ since }) => program.has(since))) {
    for (let at = 0; at < inputs; at++) {
      program.word(MAX_DEPTH);
    }
    program.code.op(code);
    program.use();
  }
  for (let size = 1; size <= MAX_PUSH; size++) {
    program.code.push(1n, size);
    program.code.op(0x50);
  }
  for (let size = 1; size <= MAX_DUP; size++) {
    stackOf(program, size);
  }
};

const STATEMENTS: readonly Statement[] = [
  ...[wordResult, wordResult, addressResult, load, load, store, store, copy, log, call, call],
  ...[precompile, create, stack, jump, soup, ancestor],
];

/** Returns the code of a program that executes all opcodes on words. */
export const surveyProgram = (options: ProgramOptions): Uint8Array => new Program(options, 0).buildOf([survey]);

/** Returns the code of a random program. */
export const randomProgram = (options: ProgramOptions): Uint8Array => new Program(options, 0).build();
