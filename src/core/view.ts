import type { Address, Data, Hash } from "../ethereum/hex.ts";
import type { BlockId, Heads } from "./heads.ts";
import type { AccountChange } from "./stateReader.ts";

/** What one request (a whole batch) reads everything from: immutable, swapped whole. */
export interface View {
  readonly heads: Heads;
  /** Absent where a chain has no pending room (tests, tools): as `pendingFrom: "latest"`. */
  readonly pending?: PendingView | undefined;
}

/** What `x-forebay-pending` says. */
export type PendingMode = "live" | "unverified" | "degraded" | "stale" | "native" | "node" | "none";

/** Who answers at `pending`: this view, the newest sealed block as for `latest`, or the node's own `pending` (the tag is passed on). */
export type PendingSource = "view" | "latest" | "node";

/** UTF-8 JSON text of one result, to be spliced into a response as it is. */
export type Body = Uint8Array;

/** The environment that code sees in a pending block. Fees in wei, `timestamp` in seconds. */
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

/** One log of a pending block; its place is known without its block's hash, which changes with every message. */
export interface PendingLog {
  readonly address: Address;
  readonly topics: readonly Hash[];
  readonly data: Data;
  readonly transactionHash: Hash;
  readonly transactionIndex: number;
  /** In the whole block. */
  readonly logIndex: number;
}

/**
 * A block being built, up to one message: immutable. Its hash is that message's, in the block, its receipts and its logs;
 * its transactions carry `blockHash: null`. Bodies are made when asked for and kept.
 */
export interface PendingBlock extends BlockId {
  /** Of the newest message. */
  readonly index: number;
  readonly environment: PendingEnvironment;
  readonly gasUsed: bigint;
  readonly blobGasUsed: bigint;
  readonly transactionHashes: readonly Hash[];
  /** Every field of the contract's 2.1: transactions whole, or their hashes. */
  body(fullTransactions: boolean): Body;
  /** The transaction at that index, or undefined. */
  transaction(index: number): Body | undefined;
  receipt(index: number): Body | undefined;
  /** All receipts, in order; undefined while one of them is not known (not executed, and not in the feed's metadata). */
  receipts(): Body | undefined;
  /** In order; of the whole block, or from that transaction index on. */
  logs(fromTransaction?: number): readonly PendingLog[];
  formatLog(log: PendingLog, removed?: boolean): Body;
}

/** What an account was made to be by the pending blocks; `code` is set where they changed it, else it is the code at the base block. */
export type WrittenAccount = Omit<AccountChange, "slots">;

/** The pre-confirmed chain above a sealed block, at one moment: immutable. */
export interface PendingView {
  readonly mode: PendingMode;
  /** Block, index and hash of the newest message, or of the sealed block: two views with one id hold the same blocks. */
  readonly id: string;
  /** Who answers questions about blocks, transactions, receipts and logs at `pending`. */
  readonly blocksFrom: PendingSource;
  /** Who answers state reads, calls, estimates and simulations at `pending`; never a mix. */
  readonly stateFrom: PendingSource;
  /** The sealed block that the pending blocks stand on. What they did not write has the value it has there, read by this hash. */
  readonly base: BlockId;
  /** Ascending, unbroken, all above `heads.latest` of the same View. Empty unless `blocksFrom` is `view`. */
  readonly blocks: readonly PendingBlock[];
  /** The newest of `blocks`. */
  readonly newest: PendingBlock | undefined;

  /** Written in the pending blocks, or undefined: as at `base`. Only where `stateFrom` is `view`. */
  account(address: Address): WrittenAccount | undefined;
  /** Written in the pending blocks, without leading zero bytes (empty for any other slot of a cleared account); undefined: as at `base`. */
  storage(address: Address, slot: Hash): Uint8Array | undefined;
  /**
   * The nonce for the next transaction: what the view wrote, or `stateNonce`, raised over the consecutive transactions of that sender that a node
   * accepted through forebay. `stateNonce` is the nonce at `base`, or of whoever answers state.
   */
  nonce(address: Address, stateNonce: bigint): bigint;

  /** Where a pre-confirmed transaction is. */
  find(transactionHash: Hash): { readonly block: PendingBlock; readonly index: number } | undefined;
  /** A pending block by a hash that was given out in the last 10 s: each hash for its own prefix. */
  byHash(hash: Hash): PendingBlock | undefined;
}

/** Transactions of a block that a new view brought. */
export interface PendingExtension {
  readonly block: PendingBlock;
  readonly fromTransaction: number;
  /** Exclusive. */
  readonly toTransaction: number;
  /** `logs`: the transactions were announced before, their logs are known only now. */
  readonly brings: "transactions" | "logs";
}

/** What one new view brought; subscriptions are made from it. */
export interface PendingChange {
  readonly view: View;
  /** Ascending; empty if the change was a head or a mode. */
  readonly extended: readonly PendingExtension[];
  /** Logs that were announced as pre-confirmed and are not any more: to be sent again, these bodies say `removed: true`. */
  readonly removed: readonly Body[];
}
