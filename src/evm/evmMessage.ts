import type { Address, Hash } from "../ethereum/hex.ts";
import type { ActiveRules, BlockEnvironment, TransactionOptions, TransactionResult } from "./engine.ts";
import type { StateOverlay } from "./stateOverlay.ts";

export interface Message {
  readonly caller: Address;
  /** null creates a contract. The caller's nonce was incremented before. */
  readonly to: Address | null;
  readonly value: bigint;
  readonly data: Uint8Array;
  readonly gas: bigint;
}

/** How the engine runs a message. */
export type MessageOptions = Pick<TransactionOptions, "movedPrecompiles" | "tracesTransfers" | "tracesAccess">;

export interface MessageContext extends MessageOptions {
  readonly block: BlockEnvironment;
  readonly gasPrice: bigint;
  readonly blobVersionedHashes: readonly Hash[];
  /** Addresses and slots that are warm from the beginning (EIP-2929). */
  readonly warmAddresses: readonly Address[];
  readonly warmSlots: readonly (readonly [Address, Hash])[];
}

export interface MessageResult extends Omit<TransactionResult, "maxUsedGas" | "blobGasUsed"> {
  readonly refund: bigint;
  /** Accounts to delete at the end of the transaction. */
  readonly destroyed: readonly Address[];
}

/** Runs one message, with all calls that it makes, on a state. `applyTransaction` does everything else of a transaction. */
export interface MessageEngine extends ActiveRules {
  readonly precompiles: readonly Address[];
  run(state: StateOverlay, message: Message, context: MessageContext): Promise<MessageResult>;
}

/** Where a message runs. */
export interface MessagePlace {
  readonly engine: MessageEngine;
  readonly state: StateOverlay;
  readonly block: BlockEnvironment;
}
