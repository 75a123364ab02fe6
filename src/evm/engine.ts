import type { StateReader } from "../core/stateReader.ts";
import type { Address, Hash } from "../ethereum/hex.ts";
import type { LogEntry } from "../ethereum/receipt.ts";
import type { Rules } from "../ethereum/rules.ts";
import type { AccessListEntry, DepositTransaction } from "../ethereum/transaction.ts";
import type { ExecutionState } from "./executionState.ts";
import type { ReadRecorder } from "./readRecorder.ts";
import type { TransactionMessage } from "./transactionMessage.ts";

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
  /** EIP-7843 */
  readonly slotNumber?: bigint;
  /** Returns the hash of one of the 256 blocks before this one. */
  blockHash(number: bigint): Hash;
}

/** The checks that are not applied to every call. */
export interface TransactionChecks {
  readonly nonce: boolean;
  /** EIP-3607, and the cap of the gas limit: EIP-7825, or EIP-8037 from Amsterdam on. */
  readonly sender: boolean;
  /** If both fees are zero, the base fee is not checked either. */
  readonly freeGas: boolean;
  /** From Amsterdam on: execution may use the whole gas limit, also above the cap of EIP-7825. Default: no. */
  readonly liftsExecutionCap?: boolean;
}

export interface TransactionOptions {
  /** Default: all checks. */
  readonly checks?: TransactionChecks | undefined;
  /** Precompiles at other addresses, by their new address; null if the precompile is removed. */
  readonly movedPrecompiles?: ReadonlyMap<Address, Address | null> | undefined;
  /** Also return transfers of value as logs. */
  readonly tracesTransfers?: boolean | undefined;
  /** Also return the accounts and slots that the transaction accessed. */
  readonly tracesAccess?: boolean | undefined;
  /** The EIP-2718 bytes. If they are present, an OP-stack chain charges its L1 and operator fees. */
  readonly raw?: Uint8Array | undefined;
}

export interface EngineLog extends LogEntry {
  /** Not a log but a transfer of value, written as an ERC-20 Transfer from the address of ERC-7528. */
  readonly isTransfer: boolean;
}

/** Gas before refunds (EIP-7778, EIP-8037). */
export interface BlockGas {
  readonly execution: bigint;
  /** For the growth of the state. */
  readonly state: bigint;
}

export interface TransactionResult {
  readonly status: "success" | "revert" | "halt";
  /** Why the transaction halted, in geth's words. */
  readonly halt?: string;
  /** The code, if a creation succeeded. Empty after a halt. */
  readonly returnData: Uint8Array;
  /** After refunds. */
  readonly gasUsed: bigint;
  /** The highest gas during the run, before refunds. */
  readonly maxUsedGas: bigint;
  /** The transaction's part of the block's two sums of gas. Undefined before Amsterdam. */
  readonly blockGas?: BlockGas;
  readonly blobGasUsed: bigint;
  /** In order of execution. Empty unless the transaction succeeded. */
  readonly logs: readonly EngineLog[];
  readonly created?: Address;
  /** Present only with `tracesAccess`. */
  readonly accessed?: readonly AccessListEntry[];
}

export interface DepositResult extends TransactionResult {
  /** The sender's nonce before the deposit, as in the receipt. */
  readonly nonce: bigint;
}

/** The rules that are active in a block. */
export interface ActiveRules {
  readonly rules: Rules;
  isActive(eip: number): boolean;
}

/** Where a transaction executes. `state` was created by an engine of the same kind. */
export interface TransactionContext {
  readonly state: ExecutionState;
  readonly block: BlockEnvironment;
  /** Present: the engine records what the run reads. That costs time. */
  readonly reads?: ReadRecorder | undefined;
}

/**
 * Executes whole transactions under one set of rules, one at a time. If a method throws, the state is as before the call,
 * and the execution can continue. An error of the state's reader is thrown unchanged.
 */
export interface Engine extends ActiveRules {
  readonly precompiles: readonly Address[];
  /** Returns a state for this engine, and for engines of the same chain and kind for other rules. */
  createState(reader: StateReader): ExecutionState;
  /** Checks a transaction, charges the sender, runs it and pays refunds and fees. Throws TransactionError. */
  transact(
    context: TransactionContext,
    message: TransactionMessage,
    options?: TransactionOptions,
  ): Promise<TransactionResult>;
  /** Executes a deposit of the OP stack. A deposit is never rejected. */
  deposit(context: TransactionContext, deposit: DepositTransaction): Promise<DepositResult>;
  /** Calls a contract as the system account and returns its data. The call is free. It does nothing if the account has no code. */
  systemCall(context: TransactionContext, to: Address, data: Uint8Array): Promise<Uint8Array>;
}

/** `reference` is the unmodified library. */
export const ENGINE_KINDS = ["fast", "reference"] as const;
export type EngineKind = (typeof ENGINE_KINDS)[number];

/** The modules of the fast engine, two builds of the same sources: revm, and op-revm for the OP stack. */
export type ModuleKind = "ethereum" | "optimism";

export interface EngineOptions {
  /** Reports whether the deadline of the running execution has passed. The fast engine throws DeadlineError then. */
  isLate?(): boolean;
  /** The module that the thread will need. It is loaded, and its first run is done, before the engines are returned. */
  readonly module?: ModuleKind | undefined;
}

/** Where a user of an engine executes. */
export interface ExecutionContext extends TransactionContext {
  readonly engine: Engine;
}
