import type { Address, Hash } from "../chain/hex.ts";
import type { Receipt } from "../chain/receipt.ts";
import type { StateChanges } from "../chain/stateReader.ts";

/** Why a message's state is not served from here: a label of the metric. */
export type Unproven =
  | "gas"
  | "bloom"
  | "receiptsRoot"
  | "undecodable"
  | "foreignChain"
  | "unexecutable"
  | "rejected"
  | "failed"
  | "late";

export interface DecodedTransaction {
  readonly hash: Hash;
  /** Undefined where the bytes are no transaction that is known here. */
  readonly sender: Address | undefined;
}

/** What a node's receipt has beside consensus: L1 fees, blob gas. JSON values. */
export type ReceiptExtra = Readonly<Record<string, string>>;

/** What running one message's transactions gave. */
export interface Outcome {
  readonly receipts: readonly Receipt[];
  readonly extras: readonly ReceiptExtra[];
  readonly changes: StateChanges;
}

/** What the executor made of one message: plain data, sent between threads. */
export interface Execution {
  readonly transactions: readonly DecodedTransaction[];
  /** Over all transactions of the block so far. */
  readonly transactionsRoot: Hash;
  /** Present where the transactions ran and what came out agrees with the message. */
  readonly outcome: Outcome | undefined;
  readonly unproven: Unproven | undefined;
}
