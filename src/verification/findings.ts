import type { BlockId } from "../core/heads.ts";
import type { Check } from "../core/node.ts";
import type { BlockTransactions, VerifiedReceipts } from "./blockRows.ts";
import { MalformedField } from "./jsonFields.ts";

/** The number of a header, and how many of the fields that forks added it has. */
export interface HeaderForm {
  readonly number: bigint;
  readonly forkFields: number;
}

/** The result of one check. `uncomputable`: forebay does not know the encoding of a part of the response. */
export interface Finding {
  readonly check: Check;
  readonly outcome: "passed" | "failed" | "uncomputable";
  /** The block's transactions, if they passed and may be compared with later responses. */
  readonly transactions?: BlockTransactions;
  /** The block's receipts, if they passed. */
  readonly receipts?: VerifiedReceipts;
  /** The block whose header binds all of the response. */
  readonly boundTo?: BlockId;
  /** Of a header that has not failed. */
  readonly header?: HeaderForm;
}

export const passed = (check: Check): Finding => ({ check, outcome: "passed" });
export const failed = (check: Check): Finding => ({ check, outcome: "failed" });
export const uncomputable = (check: Check): Finding => ({ check, outcome: "uncomputable" });

/** Runs a check. A malformed field of the response is a failed check. */
export const failIfMalformed = (check: Check, find: () => Finding): Finding => {
  try {
    return find();
  } catch (error) {
    if (error instanceof MalformedField) {
      return failed(check);
    }
    throw error;
  }
};
