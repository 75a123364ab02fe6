import {
  EVM,
  EVMMockBlockchain,
  type EVMResult,
  type Message as LibraryMessage,
  type PrecompileFunc,
} from "@ethereumjs/evm";
import type { Account, Address as AddressBytes } from "@ethereumjs/util";
import { parseData } from "../ethereum/hex.ts";
import type { BlockEnvironment } from "./engine.ts";
import { keepJumpAnalyses } from "./jumpAnalysis.ts";
import { LibraryState } from "./libraryState.ts";
import type { StateOverlay } from "./stateOverlay.ts";
import { transferLog } from "./transferLog.ts";

export type LibraryLog = NonNullable<EVMResult["execResult"]["logs"]>[number];
type CallMessage = Parameters<EVM["_executeCall"]>[0];
type MessageWithTo = Parameters<EVM["_addToBalance"]>[1];
type OpHandler = NonNullable<EVM["_opcodeMap"][number]>["opHandler"];

const JUMPDEST = 0x5b;
const FIRST_LOG = 0xa0;
const LAST_LOG = 0xa4;
const SELFDESTRUCT = 0xff;
const MAX_DEPTH = 1024;
/** CREATE, CALL and CREATE2, with the stack position of their value. */
const TRANSFERRING = [
  [0xf0, 0],
  [0xf1, 2],
  [0xf5, 0],
] as const;
const NO_ANCESTOR = new Uint8Array(32);

/** The library's EVM. Its logs can include transfers of value. */
export class TracingEvm extends EVM {
  tracesTransfers = false;
  /** Number of captured logs and transfers, including those of frames that failed. */
  #captured = 0;
  #indices = new WeakMap<LibraryLog, number>();

  constructor(options: ConstructorParameters<typeof EVM>[0]) {
    super(options);
    this.#traceSelfDestructs();
    this.#countLogs();
    this.#countFailedTransfers();
    this.#keepJumpAnalyses();
  }

  use(state: StateOverlay, precompiles: Map<string, PrecompileFunc>, block: BlockEnvironment): void {
    const manager = new LibraryState(state);
    this.stateManager = manager;
    this._precompiles = precompiles;
    // The journal takes its state in its constructor, and a new EVM costs more than a transfer.
    Reflect.set(this.journal, "stateManager", manager);
    this.journal.cleanJournal();
    this.transientStorage.clear();
    this.blockchain = blockHashes(block);
    this.#captured = 0;
    this.#indices = new WeakMap();
  }

  get capturedLogs(): number {
    return this.#captured;
  }

  /** Returns the position of a log among all that the message has captured. */
  indexOf(log: LibraryLog): number {
    return this.#indices.get(log) ?? 0;
  }

  #capture(log: LibraryLog, index = this.#captured++): void {
    this.#indices.set(log, index);
  }

  #wrap(opCode: number, wrap: (original: OpHandler) => OpHandler): void {
    const entry = this._opcodeMap[opCode];
    if (entry === undefined) {
      throw new Error("the library's opcode table changed");
    }
    entry.opHandler = wrap(entry.opHandler);
  }

  #countLogs(): void {
    for (let opCode = FIRST_LOG; opCode <= LAST_LOG; opCode++) {
      this.#wrap(opCode, (original) => (runState, common) => {
        original(runState, common);
        const log = runState.interpreter._result.logs.at(-1);
        if (log !== undefined) {
          this.#capture(log);
        }
      });
    }
  }

  /** SELFDESTRUCT moves a balance without a message. */
  #traceSelfDestructs(): void {
    this.#wrap(SELFDESTRUCT, (original) => (runState, common) => {
      const { contract, address } = runState.env;
      if (this.tracesTransfers && contract.balance > 0n && !runState.env.isStatic) {
        const [beneficiary = 0n] = runState.stack.peek(1);
        const to = parseData(`0x${BigInt.asUintN(160, beneficiary).toString(16).padStart(40, "0")}`);
        const log = transferLog(address.bytes, to, contract.balance);
        this.#capture(log);
        runState.interpreter._result.logs.push(log);
      }
      return original(runState, common);
    });
  }

  /** geth captures a transfer before it checks balance and depth. The library makes no message if they do not allow the transfer. */
  #countFailedTransfers(): void {
    for (const [opCode, valueAt] of TRANSFERRING) {
      if (this._opcodeMap[opCode]?.opcodeInfo.isInvalid !== false) {
        continue;
      }
      this.#wrap(opCode, (original) => (runState, common) => {
        const value = this.tracesTransfers ? (runState.stack.peek(valueAt + 1)[valueAt] ?? 0n) : 0n;
        const { depth, contract } = runState.env;
        if (value > 0n && (contract.balance < value || depth >= MAX_DEPTH)) {
          this.#captured++;
        }
        return original(runState, common);
      });
    }
  }

  /** Starts at the first jump. */
  #keepJumpAnalyses(): void {
    const entry = this._opcodeMap[JUMPDEST];
    if (entry === undefined) {
      throw new Error("the library's opcode table changed");
    }
    const original = entry.opHandler;
    entry.opHandler = (runState, common) => {
      entry.opHandler = original;
      keepJumpAnalyses(this, runState.interpreter);
      return original(runState, common);
    };
  }

  protected override async _executeCall(message: CallMessage): Promise<EVMResult> {
    // CALLCODE sends value from an account to itself.
    const moves = !message.delegatecall && message._codeAddress === undefined;
    const index = moves ? this.#captureTransfer(message) : undefined;
    const result = await super._executeCall(message);
    if (index !== undefined) {
      this.#trace(message, message.to, result, index);
    }
    return result;
  }

  protected override async _executeCreate(message: LibraryMessage): Promise<EVMResult> {
    const index = this.#captureTransfer(message);
    const result = await super._executeCreate(message);
    if (index !== undefined && result.createdAddress !== undefined) {
      this.#trace(message, result.createdAddress, result, index);
    }
    return result;
  }

  /** Balances wrap at 2^256, like geth's. */
  protected override async _addToBalance(to: Account, message: MessageWithTo): Promise<void> {
    to.balance = BigInt.asUintN(256, to.balance + message.value);
    await this.journal.putAccount(message.to, to);
  }

  /** Returns the index of a frame's transfer. It precedes the frame's own logs. */
  #captureTransfer({ value }: LibraryMessage): number | undefined {
    return this.tracesTransfers && value > 0n ? this.#captured++ : undefined;
  }

  /** The log belongs to the frame's own logs, which are discarded if the frame fails. */
  #trace(message: LibraryMessage, to: AddressBytes, { execResult }: EVMResult, index: number): void {
    const log = transferLog(message.caller.bytes, to.bytes, message.value);
    this.#capture(log, index);
    execResult.logs = [log, ...(execResult.logs ?? [])];
  }
}

const blockHashes = (block: BlockEnvironment) => {
  const getBlock = (number: number) => {
    const hash = number < 0 ? NO_ANCESTOR : parseData(block.blockHash(BigInt(number)));
    return Promise.resolve({ hash: () => hash });
  };
  const blockchain: EVMMockBlockchain = new EVMMockBlockchain();
  return Object.assign(blockchain, { getBlock });
};
