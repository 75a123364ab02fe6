import { EVM, EVMMockBlockchain, type EVMResult } from "@ethereumjs/evm";
import { parseData } from "../../ethereum/hex.ts";
import type { BlockEnvironment } from "../engine.ts";

export type LibraryLog = NonNullable<EVMResult["execResult"]["logs"]>[number];

const FIRST_LOG = 0xa0;
const LAST_LOG = 0xa4;
const NO_ANCESTOR = new Uint8Array(32);

/** The library's EVM. It counts logs, including those of frames that failed. */
export class CountingEvm extends EVM {
  #captured = 0;
  #indices = new WeakMap<LibraryLog, number>();

  constructor(options: ConstructorParameters<typeof EVM>[0]) {
    super(options);
    for (let opCode = FIRST_LOG; opCode <= LAST_LOG; opCode++) {
      this.#count(opCode);
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
