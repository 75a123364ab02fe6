import type { PendingEnvironment } from "../core/view.ts";
import type { Address, Data, Hash } from "../ethereum/hex.ts";
import type { LogEntry } from "../ethereum/receipt.ts";

/** An account that a message's transactions use, with the slots that they read or write. */
export interface ListedAccount {
  readonly address: Address;
  readonly slots: readonly Hash[];
}

/** What a message says about its block up to this message. The execution and the sealed block are compared with it. */
export interface Commitments {
  readonly stateRoot: Hash;
  readonly receiptsRoot: Hash;
  readonly logsBloom: Data;
  readonly gasUsed: bigint;
  readonly blockHash: Hash;
  readonly withdrawalsRoot: Hash;
  readonly blobGasUsed: bigint | undefined;
}

/** A receipt that the feed brings. Execution computes the other fields. */
export interface FeedReceipt {
  readonly status: boolean;
  readonly cumulativeGasUsed: bigint;
  readonly logs: readonly LogEntry[];
  readonly depositNonce: bigint | undefined;
}

/** The place of a message in the feed. */
export interface MessagePlace {
  readonly number: bigint;
  readonly index: number;
}

/**
 * What one message of a feed adds to a pending block. Each protocol has an adapter that creates it, such as `parseFlashblock`.
 * Nothing else knows the form of the wire.
 */
export interface FeedMessage {
  /** The same for all messages of one pending block. Another attempt to build that block has another key. */
  readonly blockKey: Data;
  /** The position in its block, from 0. */
  readonly index: number;
  /** Of the block. Only its first message contains it. */
  readonly environment: PendingEnvironment | undefined;
  /** The number of the block. `undefined` if this message does not contain it. */
  readonly number: bigint | undefined;
  /** The message before. `undefined` if the chain does not send it. */
  readonly previous: MessagePlace | undefined;
  readonly transactions: readonly Data[];
  /** The transaction that ends the block if it is sealed now. Every message contains it, if the chain has such transactions. */
  readonly closingTransaction: Data | undefined;
  readonly commitments: Commitments;
  /** Receipts of this message's transactions by hash. `undefined` if the feed brings none. */
  readonly receipts: ReadonlyMap<Hash, FeedReceipt> | undefined;
  /** The state that the transactions use. Empty if the feed does not bring it. */
  readonly accessList: readonly ListedAccount[];
  /** Length of the message's text, for limits. */
  readonly bytes: number;
  /** Time of arrival, in milliseconds of a monotonic clock. */
  readonly receivedMs?: number;
  /** The connection that has sent it. Default 0. */
  readonly connection?: number;
  /** The position among all messages that arrived, of all connections. */
  readonly order?: number;
}

/**
 * A message, or why there is none: a label value of the metric. `payloadEnd` announces the end of a block. It is ignored, because
 * index 0 of the next block shows the end too.
 */
export type ParsedMessage = { readonly message: FeedMessage } | { readonly refused: "malformed" | "payloadEnd" };
