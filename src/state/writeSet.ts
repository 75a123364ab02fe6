import type { Grade } from "../core/grade.ts";
import type { BlockId } from "../core/heads.ts";
import type { Address, Hash } from "../ethereum/hex.ts";

/** A value that a block wrote, or "unknown" if the source only says that it was written. */
export type Written<Value> = Value | "unknown";

/** The writes of a block to one account. A field that is absent was not written. */
export interface AccountWrites {
  readonly balance?: Written<bigint>;
  readonly nonce?: Written<bigint>;
  /** The code after the block. Empty: the account has no code. */
  readonly code?: Written<Uint8Array>;
  /** The hash of that code. It may be known where `code` is "unknown". Absent where only `code` is known. */
  readonly codeHash?: Hash;
  /** Slots outside `slots`: "cleared" if all became zero, "unknown" if any may have been written. */
  readonly otherSlots?: "cleared" | "unknown";
  /** Values without leading zero bytes. Zero is empty. */
  readonly slots: ReadonlyMap<Hash, Written<Uint8Array>>;
}

/** The writes of a block by account. An account that is absent was not written. */
export type BlockWrites = ReadonlyMap<Address, AccountWrites>;

type Mutable<Type> = { -readonly [Field in keyof Type]: Type[Field] };

/** The writes of one account while they are collected. A later write replaces an earlier one. */
export type MutableWrites = Mutable<Omit<AccountWrites, "slots">> & {
  readonly slots: Map<Hash, Written<Uint8Array>>;
};

export type MutableAccounts = Map<Address, MutableWrites>;

/** Returns the writes of an account, which are empty at first. */
export const writesOf = (accounts: MutableAccounts, address: Address): MutableWrites => {
  let writes = accounts.get(address);
  if (writes === undefined) {
    writes = { slots: new Map() };
    accounts.set(address, writes);
  }
  return writes;
};

/** The writes of one block, system writes included. */
export interface WriteSet {
  readonly block: BlockId;
  /** See packWrites. */
  readonly packed: Uint8Array;
  /** The name of the node on whose word alone it is. */
  readonly node?: string | undefined;
  /** Where it came from. Set by SourceGuard. */
  readonly source?: WriteSetSourceKind;
  /**
   * `proven`: the header of the block, whose own hash was computed here, commits to all of it, by its list or by its state root.
   * `checked`: it was executed here. `stated`: a node, or another replica, said so.
   */
  readonly grade: Grade;
  /** Another replica has read it, so that it cost nothing here. */
  readonly isShared?: boolean;
}

/** Where write sets come from. */
export type WriteSetSourceKind = "feed" | "accessList" | "trace";

/** Why a source has no write set of a block. The label value of a metric. */
export type WriteSetFailure =
  | "unsupported"
  | "late"
  | "tooLarge"
  | "incomplete"
  /** A trace may leave out accounts, and no node named them. */
  | "unlisted"
  | "mismatch"
  | "error";

/** Reads the write set of a sealed block. */
export interface WriteSetSource {
  readonly kind: WriteSetSourceKind;
  /** Provider units that one block costs. Zero: the source is free. */
  readonly unitsPerBlock: number;
  /** Whether the source is not asked for some time, because of a wrong value or of failures. */
  readonly isSuspended?: boolean;
  /** Resolves once the write set is complete and checked, or with the reason of the failure. Never rejects. */
  read(block: BlockId, signal: AbortSignal): Promise<WriteSet | WriteSetFailure>;
}
