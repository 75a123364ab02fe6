import type { BlockId } from "../core/heads.ts";
import type { Check } from "../core/node.ts";
import type { BlockTransactions, VerifiedReceipts } from "./blockRows.ts";
import { ifWellFormed } from "./jsonFields.ts";
import type { KnownHeader } from "./knownHeader.ts";

/** The number of a header, and how many of the fields that forks added it has. */
export interface HeaderForm {
  readonly number: bigint;
  readonly forkFields: number;
}

/** A transaction or a receipt whose type forebay does not know. */
export interface UnknownItem {
  readonly index: number;
  readonly type: number;
  /** Of the transaction. */
  readonly hash: string;
}

/**
 * The result of one check. `uncomputable`: forebay does not know the encoding of the header. `partial`: it does not know that of some
 * items of a list, so the list has no root. All others passed.
 */
export interface Finding {
  readonly check: Check;
  readonly outcome: "passed" | "failed" | "uncomputable" | "partial";
  /** The items of types that forebay does not know. In a list of receipts that passed, the root shows that they have the usual encoding. */
  readonly unknown?: readonly UnknownItem[];
  /** The block's transactions, if they passed and may be compared with later responses. */
  readonly transactions?: BlockTransactions;
  /** The block's receipts, if they passed. */
  readonly receipts?: VerifiedReceipts;
  /** The block whose header binds all of the response. */
  readonly boundTo?: BlockId;
  /** Of a list, whether each item is a result. */
  readonly isWhole?: boolean;
  /** Of a header that has not failed. */
  readonly header?: HeaderForm;
  /** The header's fields, if its hash was computed. */
  readonly known?: KnownHeader;
}

export const passed = (check: Check): Finding => ({ check, outcome: "passed" });
export const failed = (check: Check): Finding => ({ check, outcome: "failed" });
export const uncomputable = (check: Check): Finding => ({ check, outcome: "uncomputable" });
export const partial = (check: Check, unknown: readonly UnknownItem[]): Finding => ({
  check,
  outcome: "partial",
  unknown,
});

/** Runs a check. A malformed field of the response is a failed check. */
export const failIfMalformed = (check: Check, find: () => Finding): Finding => ifWellFormed(find, failed(check));
