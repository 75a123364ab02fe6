import { ACCOUNT_FIELDS, ENVIRONMENT_OPCODES, type EnvironmentOpcode, type ReadSet } from "../../core/readSet.ts";
import type { Address, Hash } from "../../ethereum/hex.ts";
import type { EngineLog } from "../engine.ts";
import type { ModuleMemory } from "./moduleMemory.ts";

const ADDRESS_BYTES = 20;
const WORD_BYTES = 32;

const NO_HALT = { precompileFault: "", lastStep: undefined };

/** In the order of `Status` in wasm/src/run.rs. */
const STATUSES = ["success", "revert", "halt", "failedDeposit", "readerFailed", "late", "fault"] as const;

/** The transaction's own frame before its last opcode. */
export interface LastStep {
  readonly opCode: number;
  /** The byte after the opcode. */
  readonly operand: number;
  readonly gasLeft: bigint;
  readonly memoryBytes: bigint;
  readonly returnBytes: number;
  /** First byte of what the frame returned, if it returned any. */
  readonly firstOutputByte: number | undefined;
  readonly stackLength: number;
  /** The top of the stack, top first. */
  readonly stack: readonly bigint[];
}

export interface ModuleResult {
  readonly status: "success" | "revert" | "halt" | "failedDeposit";
  /** revm's `InstructionResult`. */
  readonly code: number;
  readonly gasUsed: bigint;
  readonly maxUsedGas: bigint;
  readonly stateGas: bigint;
  readonly created: Address | undefined;
  readonly returnData: Uint8Array;
  readonly logs: readonly EngineLog[];
  readonly accessed: readonly (readonly [Address, Hash | undefined])[];
  /** Present only if requested. */
  readonly reads: ReadSet | undefined;
  /** revm's word for the failure of a precompile that the transaction called. */
  readonly precompileFault: string;
  readonly lastStep: LastStep | undefined;
}

export type ModuleOutcome =
  | ModuleResult
  | { readonly status: "readerFailed" | "late" }
  | { readonly status: "fault"; readonly text: string };

/** Reads the output of the module in its order. */
class OutputReader {
  readonly #memory: ModuleMemory;
  #at: number;

  constructor(memory: ModuleMemory, at: number) {
    this.#memory = memory;
    this.#at = at;
  }

  #skip(length: number): number {
    const at = this.#at;
    this.#at += length;
    return at;
  }

  uint32(): number {
    return this.#memory.uint32(this.#skip(4));
  }

  uint64(): bigint {
    return this.#memory.uint64(this.#skip(8));
  }

  word(): bigint {
    return this.#memory.word(this.#skip(WORD_BYTES));
  }

  address(): Address {
    return this.#memory.address(this.#skip(ADDRESS_BYTES));
  }

  hash(): Hash {
    return this.#memory.hash(this.#skip(WORD_BYTES));
  }

  bytes(): Uint8Array {
    const length = this.uint32();
    return this.#memory.bytes(this.#skip(length), length);
  }

  data(): `0x${string}` {
    const length = this.uint32();
    return this.#memory.data(this.#skip(length), length);
  }

  text(): string {
    const length = this.uint32();
    return this.#memory.text(this.#skip(length), length);
  }

  list<T>(item: () => T): T[] {
    const items: T[] = [];
    for (let left = this.uint32(); left > 0; left--) {
      items.push(item());
    }
    return items;
  }
}

export const readResult = (memory: ModuleMemory, at: number): ModuleOutcome => {
  const reader = new OutputReader(memory, at);
  const status = STATUSES[reader.uint32()] ?? "fault";
  if (status === "fault") {
    return { status, text: reader.text() };
  }
  if (status === "readerFailed" || status === "late") {
    return { status };
  }
  return {
    status,
    code: reader.uint32(),
    gasUsed: reader.uint64(),
    maxUsedGas: reader.uint64(),
    stateGas: reader.uint64(),
    created: reader.uint32() === 1 ? reader.address() : undefined,
    returnData: reader.bytes(),
    logs: reader.list(() => readLog(reader)),
    accessed: reader.list(() => readAccess(reader)),
    reads: reader.uint32() === 1 ? readReads(reader) : undefined,
    ...(status === "halt" || status === "failedDeposit"
      ? { precompileFault: reader.text(), lastStep: readStep(reader) }
      : NO_HALT),
  };
};

const readLog = (reader: OutputReader): EngineLog => {
  const address = reader.address();
  const isTransfer = reader.uint32() === 1;
  const topics = reader.list(() => reader.hash());
  return { address, topics, data: reader.data(), isTransfer };
};

const readAccess = (reader: OutputReader): readonly [Address, Hash | undefined] => {
  const address = reader.address();
  const hasSlot = reader.uint32() === 1;
  const slot = reader.hash();
  return [address, hasSlot ? slot : undefined];
};

/** Source: wasm/src/reads.rs. */
const readReads = (reader: OutputReader): ReadSet => ({
  accounts: reader.list(() => {
    const address = reader.address();
    const bits = reader.uint32();
    const fields = ACCOUNT_FIELDS.filter((_, at) => bits & (1 << at));
    return { address, fields, slots: reader.list(() => reader.hash()) };
  }),
  blockHashes: reader.list(() => reader.uint64()),
  environment: reader.list(() => environmentOpcode(reader.uint32())),
});

const OPCODES: ReadonlyMap<number, EnvironmentOpcode> = new Map(
  Object.entries(ENVIRONMENT_OPCODES).map(([name, code]) => [code, name as EnvironmentOpcode]),
);

const environmentOpcode = (code: number): EnvironmentOpcode => {
  const opcode = OPCODES.get(code);
  if (opcode === undefined) {
    throw new Error(`the module read an unknown environment opcode: ${code}`);
  }
  return opcode;
};

const readStep = (reader: OutputReader): LastStep | undefined => {
  if (reader.uint32() === 0) {
    return undefined;
  }
  return {
    opCode: reader.uint32(),
    operand: reader.uint32(),
    gasLeft: reader.uint64(),
    memoryBytes: reader.uint64(),
    returnBytes: Number(reader.uint64()),
    firstOutputByte: reader.bytes()[0],
    stackLength: reader.uint32(),
    stack: reader.list(() => reader.word()),
  };
};
