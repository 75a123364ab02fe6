import type { Check } from "../core/node.ts";
import type { BlockTransactions } from "./blockTransactions.ts";
import type { HeaderForm } from "./forkFields.ts";
import type { VerifiedReceipts } from "./verifiedReceipts.ts";

/** The result of one check. `uncomputable`: forebay does not know the encoding of a part of the response. */
export interface Finding {
  readonly check: Check;
  readonly outcome: "passed" | "failed" | "uncomputable";
  /** The block's transactions, if they passed and may be compared with later responses. */
  readonly transactions?: BlockTransactions;
  /** The block's receipts, if they passed. */
  readonly receipts?: VerifiedReceipts;
  /** Of a header that has not failed. */
  readonly header?: HeaderForm;
}

export const passed = (check: Check): Finding => ({ check, outcome: "passed" });
export const failed = (check: Check): Finding => ({ check, outcome: "failed" });
export const uncomputable = (check: Check): Finding => ({ check, outcome: "uncomputable" });
