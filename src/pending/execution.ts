import type { BlockId } from "../core/heads.ts";
import type { StateChanges } from "../core/stateReader.ts";
import type { PendingEnvironment } from "../core/view.ts";
import type { Address, Data, Hash } from "../ethereum/hex.ts";
import type { Receipt } from "../ethereum/receipt.ts";

/** Why a message's state is not served from here: a label of the metric. */
export type UnverifiedReason =
  | "gas"
  | "bloom"
  | "receiptsRoot"
  | "undecodable"
  | "foreignChain"
  | "unexecutable"
  | "rejected"
  | "failed"
  | "unreadable"
  | "tooMuchState"
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
  readonly unverified: UnverifiedReason | undefined;
  /** More about `unverified`, for the log. */
  readonly cause?: string | undefined;
}

/** State that a message reads or writes, as the feed announces it. */
export interface Accessed {
  readonly address: Address;
  readonly slots: readonly Hash[];
}

/** One message to run: plain data, sent between threads. */
export interface Work {
  readonly id: number;
  /** The work whose outcome this one starts from; undefined: the base block's state. */
  readonly before: number | undefined;
  readonly environment: PendingEnvironment;
  readonly index: number;
  readonly transactions: readonly Data[];
  /** Empty where the feed has none. A help only: it is not verified. */
  readonly accessList: readonly Accessed[];
  /** A transaction that is not among them will end the block and change what they paid (Subblocks): state cannot be known. */
  readonly hasPostExec: boolean;
  /** What the message says of the block so far. */
  readonly told: {
    readonly gasUsed: bigint;
    readonly logsBloom: Data;
    readonly receiptsRoot: Hash;
  };
}

/** Runs messages one after another, each on what the one before it left. */
export interface Executor {
  execute(work: Work): Promise<Execution>;
  /** The base is another block now. `through`: the work whose outcome is that block's state; undefined: nothing that was run counts. */
  rebase(base: BlockId, through: number | undefined): void;
  close(): Promise<void>;
}
