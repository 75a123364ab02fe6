import type { Address, Hash } from "../ethereum/hex.ts";
import type { LogEntry } from "../ethereum/receipt.ts";
import type { Rules } from "../ethereum/rules.ts";
import type { AccessListEntry } from "../ethereum/transaction.ts";
import type { StateOverlay } from "./stateOverlay.ts";

/** What contracts see of the block that they run in. */
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
  /** For the 256 blocks before this one. */
  blockHash(number: bigint): Hash;
}

export interface Message {
  readonly caller: Address;
  /** null creates a contract; the caller's nonce is increased by then. */
  readonly to: Address | null;
  readonly value: bigint;
  readonly data: Uint8Array;
  readonly gas: bigint;
}

export interface MessageContext {
  readonly block: BlockEnvironment;
  readonly gasPrice: bigint;
  readonly blobVersionedHashes: readonly Hash[];
  /** Addresses and slots that are warm from the beginning (EIP-2929). */
  readonly warmAddresses: readonly Address[];
  readonly warmSlots: readonly (readonly [Address, Hash])[];
  /** Precompiles that stand elsewhere, by the new address; null where one was taken away. */
  readonly movedPrecompiles?: ReadonlyMap<Address, Address | null>;
  /** Also tell where value moved. */
  readonly tracesTransfers?: boolean;
  /** Also tell what was accessed. */
  readonly tracesAccess?: boolean;
}

export interface EngineLog extends LogEntry {
  /** Not a log but value that moved: an ERC-20 Transfer from ERC-7528's address. */
  readonly isTransfer: boolean;
  /** Position among all logs that its message has captured, with those of frames that failed. */
  readonly index: number;
}

export interface MessageResult {
  readonly status: "success" | "revert" | "halt";
  /** Why it halted, in geth's words. */
  readonly halt?: string;
  /** Of a creation that succeeded: the code. Empty on a halt. */
  readonly returnData: Uint8Array;
  readonly gasUsed: bigint;
  readonly refund: bigint;
  /** In order of execution; empty unless it succeeded. */
  readonly logs: readonly EngineLog[];
  /** Number of logs that were captured, with those of frames that failed. */
  readonly capturedLogs: number;
  readonly created?: Address;
  /** To be deleted at the end of the transaction. */
  readonly destroyed: readonly Address[];
  /** Addresses and slots that opcodes touched; only where it was asked for. */
  readonly accessed?: readonly AccessListEntry[];
}

/** Runs one message, with all that it calls, on a state. Everything else a transaction does is applyTransaction's. */
export interface Engine {
  readonly rules: Rules;
  readonly precompiles: readonly Address[];
  isActive(eip: number): boolean;
  run(state: StateOverlay, message: Message, context: MessageContext): Promise<MessageResult>;
}
