import type { Address, Hash } from "../ethereum/hex.ts";
import type { LogEntry } from "../ethereum/receipt.ts";
import type { Rules } from "../ethereum/rules.ts";
import type { AccessListEntry } from "../ethereum/transaction.ts";
import type { StateOverlay } from "./stateOverlay.ts";

/** The block that contracts see while they run. */
export interface BlockEnvironment {
  readonly number: bigint;
  readonly timestamp: bigint;
  readonly coinbase: Address;
  readonly gasLimit: bigint;
  readonly baseFee: bigint;
  readonly prevRandao: Hash;
  /** Before the Merge only. */
  readonly difficulty?: bigint;
  readonly blobBaseFee: bigint;
  /** Returns the hash of one of the 256 blocks before this one. */
  blockHash(number: bigint): Hash;
}

export interface Message {
  readonly caller: Address;
  /** null creates a contract. The caller's nonce was incremented before. */
  readonly to: Address | null;
  readonly value: bigint;
  readonly data: Uint8Array;
  readonly gas: bigint;
}

/** How the engine runs a message. */
export interface MessageOptions {
  /** Precompiles at other addresses, by their new address; null if the precompile is removed. */
  readonly movedPrecompiles?: ReadonlyMap<Address, Address | null> | undefined;
  /** Also return transfers of value as logs. */
  readonly tracesTransfers?: boolean | undefined;
  /** Also return the accounts and slots that the message accessed. */
  readonly tracesAccess?: boolean | undefined;
}

export interface MessageContext extends MessageOptions {
  readonly block: BlockEnvironment;
  readonly gasPrice: bigint;
  readonly blobVersionedHashes: readonly Hash[];
  /** Addresses and slots that are warm from the beginning (EIP-2929). */
  readonly warmAddresses: readonly Address[];
  readonly warmSlots: readonly (readonly [Address, Hash])[];
}

export interface EngineLog extends LogEntry {
  /** Not a log but a transfer of value, written as an ERC-20 Transfer from the address of ERC-7528. */
  readonly isTransfer: boolean;
  /** Position among all logs that the message has captured, including those of frames that failed. */
  readonly index: number;
}

export interface MessageResult {
  readonly status: "success" | "revert" | "halt";
  /** Why the message halted, in geth's words. */
  readonly halt?: string;
  /** The code, if a creation succeeded. Empty after a halt. */
  readonly returnData: Uint8Array;
  readonly gasUsed: bigint;
  readonly refund: bigint;
  /** In order of execution. Empty unless the message succeeded. */
  readonly logs: readonly EngineLog[];
  /** Number of captured logs, including those of frames that failed. */
  readonly capturedLogs: number;
  readonly created?: Address;
  /** Accounts to delete at the end of the transaction. */
  readonly destroyed: readonly Address[];
  /** Present only with `tracesAccess`. */
  readonly accessed?: readonly AccessListEntry[];
}

/** Runs one message, with all calls that it makes, on a state. `applyTransaction` does everything else of a transaction. */
export interface Engine {
  readonly rules: Rules;
  readonly precompiles: readonly Address[];
  isActive(eip: number): boolean;
  run(state: StateOverlay, message: Message, context: MessageContext): Promise<MessageResult>;
}

/** Where a transaction executes. */
export interface ExecutionContext {
  readonly engine: Engine;
  readonly state: StateOverlay;
  readonly block: BlockEnvironment;
}
