import { EVM, EVMMockBlockchain, type EVMResult } from "@ethereumjs/evm";
import { parseData } from "../../ethereum/hex.ts";
import type { BlockEnvironment } from "../engine.ts";
import { type LibraryStep, READING_OPCODES } from "./stepReads.ts";

export type LibraryLog = NonNullable<EVMResult["execResult"]["logs"]>[number];

type OpcodeEntry = EVM["_opcodeMap"][number];

const FIRST_LOG = 0xa0;
const LAST_LOG = 0xa4;
const NO_ANCESTOR = new Uint8Array(32);

/** The library's EVM. It counts logs, including those of frames that failed, and reports opcodes that read state or environment. */
export class InstrumentedEvm extends EVM {
  /** Called before each of the reported opcodes. The library's own event copies the memory before every opcode. */
  onStep: ((step: LibraryStep) => void) | undefined;
  #captured = 0;
  #indices = new WeakMap<LibraryLog, number>();

  constructor(options: ConstructorParameters<typeof EVM>[0]) {
    super(options);
    for (let opCode = FIRST_LOG; opCode <= LAST_LOG; opCode++) {
      this.#count(opCode);
    }
    for (const entry of this._opcodeMap) {
      if (READING_OPCODES.has(entry.opcodeInfo.fullName)) {
        this.#report(entry);
      }
    }
  }

  /** Sets the block of the next transaction. */
  use(block: BlockEnvironment): void {
    this.blockchain = ancestorsOf(block);
    this.#captured = 0;
    this.#indices = new WeakMap();
  }

  /** Number of logs since `use`. */
  get capturedLogs(): number {
    return this.#captured;
  }

  /** Returns the position of a log among all logs since `use`. */
  indexOf(log: LibraryLog): number {
    return this.#indices.get(log) ?? 0;
  }

  /** The gas handler is the only function that the library calls before it charges gas. */
  #report(entry: OpcodeEntry): void {
    const { opcodeInfo, gasHandler } = entry;
    const { fullName: name, code: opCode, dynamicGas } = opcodeInfo;
    entry.opcodeInfo = { ...opcodeInfo, dynamicGas: true };
    entry.gasHandler = async (runState, gas, common) => {
      this.onStep?.({ name, opCode, stack: runState.stack, own: runState.env.address });
      return dynamicGas ? gasHandler(runState, gas, common) : gas;
    };
  }

  #count(opCode: number): void {
    const entry = this._opcodeMap[opCode];
    if (entry === undefined) {
      throw new Error("the library's opcode table changed");
    }
    const original = entry.opHandler;
    entry.opHandler = (runState, common) => {
      original(runState, common);
      const log = runState.interpreter._result.logs.at(-1);
      if (log !== undefined) {
        this.#indices.set(log, this.#captured++);
      }
    };
  }
}

const ancestorsOf = (block: BlockEnvironment): EVMMockBlockchain => {
  const getBlock = async (number: number) => {
    const hash = number < 0 ? NO_ANCESTOR : parseData(block.blockHash(BigInt(number)));
    return { hash: () => hash };
  };
  return Object.assign(new EVMMockBlockchain(), { getBlock });
};
