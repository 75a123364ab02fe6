import { EVM, EVMMockBlockchain } from "@ethereumjs/evm";
import { parseData } from "../../ethereum/hex.ts";
import type { BlockEnvironment } from "../engine.ts";
import { type LibraryStep, READING_OPCODES } from "./stepReads.ts";

type OpcodeEntry = EVM["_opcodeMap"][number];

const NO_ANCESTOR = new Uint8Array(32);

/** The library's EVM. It reports opcodes that read state or environment. */
export class InstrumentedEvm extends EVM {
  /** Called before each of the reported opcodes. The library's own event copies the memory before every opcode. */
  onStep: ((step: LibraryStep) => void) | undefined;

  constructor(options: ConstructorParameters<typeof EVM>[0]) {
    super(options);
    for (const entry of this._opcodeMap) {
      if (READING_OPCODES.has(entry.opcodeInfo.fullName)) {
        this.#report(entry);
      }
    }
  }

  /** Sets the block of the next transaction. */
  use(block: BlockEnvironment): void {
    this.blockchain = ancestorsOf(block);
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
}

const ancestorsOf = (block: BlockEnvironment): EVMMockBlockchain => {
  const getBlock = async (number: number) => {
    const hash = number < 0 ? NO_ANCESTOR : parseData(block.blockHash(BigInt(number)));
    return { hash: () => hash };
  };
  return Object.assign(new EVMMockBlockchain(), { getBlock });
};
