import type { Address, Data, Hash } from "../ethereum/hex.ts";

/** An account that a message's transactions use, with the slots that they read or write. */
export interface ListedAccount {
  readonly address: Address;
  readonly slots: readonly Hash[];
}

/** The fields that only the first message of a block contains. */
export interface FlashblockBase {
  readonly parentHash: Hash;
  readonly parentBeaconBlockRoot: Hash;
  readonly feeRecipient: Address;
  readonly prevRandao: Hash;
  readonly blockNumber: bigint;
  readonly gasLimit: bigint;
  readonly timestamp: bigint;
  readonly extraData: Data;
  readonly baseFeePerGas: bigint;
}

/** The block after this message. All fields are cumulative, except `transactions`: they are the new ones. */
export interface FlashblockDiff {
  readonly stateRoot: Hash;
  readonly receiptsRoot: Hash;
  readonly logsBloom: Data;
  readonly gasUsed: bigint;
  readonly blockHash: Hash;
  readonly transactions: readonly Data[];
  readonly withdrawalsRoot: Hash;
  readonly blobGasUsed: bigint | undefined;
  /** Subblocks: the transaction that ends the block if it is sealed now. Every message contains it. */
  readonly postExecTransaction: Data | undefined;
}

export interface FlashblockLog {
  readonly address: Address;
  readonly topics: readonly Hash[];
  readonly data: Data;
}

/** A receipt of the metadata. Execution computes the other fields. */
export interface FlashblockReceipt {
  readonly status: boolean;
  readonly cumulativeGasUsed: bigint;
  readonly logs: readonly FlashblockLog[];
  readonly depositNonce: bigint | undefined;
}

/** One message of the sequencer's feed. */
export interface Flashblock {
  readonly payloadId: Data;
  readonly index: number;
  readonly base: FlashblockBase | undefined;
  readonly diff: FlashblockDiff;
  /** The number from the metadata. World Chain sends none. */
  readonly blockNumber: bigint | undefined;
  /** Receipts of this message's transactions by hash. `undefined` if the metadata contains none. */
  readonly receipts: ReadonlyMap<Hash, FlashblockReceipt> | undefined;
  /** The state that the transactions use. Empty if the chain does not send it. */
  readonly accessList: readonly ListedAccount[];
  /** `<block>-<index>` of the message before. `undefined` if the chain does not send it. */
  readonly previous: string | undefined;
  /** Length of the message's text, for limits. */
  readonly bytes: number;
  /** Time of arrival, in milliseconds of a monotonic clock. */
  readonly receivedMs?: number;
}

/** Why a message was discarded. It is a label value of the metric. */
export type MessageFault = "notJson" | "notAMessage" | "badBase" | "badDiff";

/** `payloadEnd` announces the end of a block. It is ignored, because index 0 of the next block shows the end too. */
export type ParsedMessage =
  | { readonly message: Flashblock }
  | { readonly ignored: "payloadEnd" }
  | { readonly fault: MessageFault };
