import type { Address, Data, Hash } from "../ethereum/hex.ts";
import type { BlockId, Heads } from "./heads.ts";
import type { AccountChange } from "./stateReader.ts";

/** The snapshot from which one request (a whole batch) reads everything. It is immutable and replaced as a whole. */
export interface View {
  readonly heads: Heads;
  /** Absent for a read at one sealed block, and until the chain is known. Requests at `pending` are then answered as for `latest`. */
  readonly pending?: PendingView | undefined;
}

/** The value of the header `x-forebay-pending`. */
export type PendingMode = "live" | "unverified" | "degraded" | "stale" | "native" | "node" | "none";

/**
 * The source of answers at `pending`: this view, or the newest sealed block as for `latest`.
 * With `node`, the request is forwarded with its tag, and the node's own pending block answers.
 */
export type PendingSource = "view" | "latest" | "node";

/** UTF-8 JSON text of one result. Responses contain these bytes unchanged. */
export type Body = Uint8Array;

/** The block environment of code in a pending block, or in a sealed one that is executed like it. Fees are in wei, `timestamp` is in seconds. */
export interface PendingEnvironment {
  readonly number: bigint;
  readonly timestamp: bigint;
  readonly gasLimit: bigint;
  readonly baseFeePerGas: bigint;
  readonly feeRecipient: Address;
  readonly prevRandao: Hash;
  readonly parentHash: Hash;
  readonly parentBeaconBlockRoot: Hash;
  readonly extraData: Data;
}

/** One log of a pending block. It has no block hash, because that hash changes with every flashblock. */
export interface PendingLog {
  readonly address: Address;
  readonly topics: readonly Hash[];
  readonly data: Data;
  readonly transactionHash: Hash;
  readonly transactionIndex: number;
  /** Counts within the whole block, from 0. */
  readonly logIndex: number;
}

/**
 * A pending block up to one flashblock. It is immutable. Block, receipts and logs carry the hash of that flashblock;
 * transactions carry `blockHash: null`. Bodies are formatted on first use and cached.
 */
export interface PendingBlock extends BlockId {
  /** The index of the newest flashblock. */
  readonly index: number;
  readonly environment: PendingEnvironment;
  readonly gasUsed: bigint;
  readonly blobGasUsed: bigint;
  readonly transactionHashes: readonly Hash[];
  /** Returns the block with full transactions or with their hashes. Fields: docs/methods.md, Block object. */
  body(fullTransactions: boolean): Body;
  /** Returns the transaction at an index, or `undefined`. */
  transaction(index: number): Body | undefined;
  receipt(index: number): Body | undefined;
  /** Returns all receipts, in order. Returns `undefined` if one is missing: not executed yet, and not in the feed's metadata. */
  receipts(): Body | undefined;
  /** Whether all receipts are known: executed, or in the feed's metadata. Otherwise logs are missing. */
  readonly hasAllReceipts: boolean;
  /** Returns the known logs in order, of the whole block or from a transaction index on. */
  logs(fromTransaction?: number): readonly PendingLog[];
  formatLog(log: PendingLog, removed?: boolean): Body;
}

/** An account as the pending blocks wrote it. Without `code`, it has its code at the base block. */
export type WrittenAccount = Omit<AccountChange, "slots">;

/** The pre-confirmed chain above a sealed block, at one moment. It is immutable. */
export interface PendingView {
  readonly mode: PendingMode;
  /** Number, index and hash of each block. Views with equal ids and bases contain the same blocks. One may know more of their receipts. */
  readonly id: string;
  /** The source of blocks, transactions, receipts and logs at `pending`. */
  readonly blocksFrom: PendingSource;
  /** The one source of state reads, calls, estimates and simulations at `pending`. */
  readonly stateFrom: PendingSource;
  /** The sealed parent of the first pending block. Unwritten state has its value at this block and is read by this hash. */
  readonly base: BlockId;
  /** Ascending, without gaps, all above `heads.latest` of the same View. Empty unless `blocksFrom` is `view`. */
  readonly blocks: readonly PendingBlock[];
  /** The last of `blocks`. */
  readonly newest: PendingBlock | undefined;

  /** Returns an account that the pending blocks wrote. Otherwise `undefined`: it is as at `base`. Needs `stateFrom: "view"`. */
  account(address: Address): WrittenAccount | undefined;
  /**
   * Returns a slot that the pending blocks wrote, without leading zero bytes. Otherwise `undefined`: it is as at `base`.
   * An unwritten slot of a cleared account is empty.
   */
  storage(address: Address, slot: Hash): Uint8Array | undefined;
  /** Returns `stateNonce`, that of the source in `stateFrom`, or the nonce of the verified messages if it is higher. */
  nonce(address: Address, stateNonce: bigint): bigint;

  /** Returns the block and index of a pre-confirmed transaction. */
  find(transactionHash: Hash): { readonly block: PendingBlock; readonly index: number } | undefined;
  /** Returns the pending block of a hash that forebay published in the last 10 s. Each hash identifies its own prefix of the block. */
  byHash(hash: Hash): PendingBlock | undefined;
  /** Returns the view that ended with that block, for state reads by its hash, or `undefined` if its state is not verified. */
  atHash(hash: Hash): PendingView | undefined;
}

/** Transactions of a block that are new in a view. */
export interface PendingExtension {
  readonly block: PendingBlock;
  readonly fromTransaction: number;
  /** Exclusive. */
  readonly toTransaction: number;
  /** `logs`: the transactions were published before, and only their logs are new. */
  readonly kind: "transactions" | "logs";
}

/** The difference between a new view and the one before. Subscription notifications are created from it. */
export interface PendingChange {
  readonly view: View;
  /** Ascending. Empty if there is neither a new message nor a new receipt. */
  readonly extended: readonly PendingExtension[];
}
