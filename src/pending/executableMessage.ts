import type { BlockId } from "../core/heads.ts";
import type { StateChanges } from "../core/stateReader.ts";
import type { PendingEnvironment } from "../core/view.ts";
import type { Address, Data, Hash } from "../ethereum/hex.ts";
import type { Receipt } from "../ethereum/receipt.ts";
import type { Rules } from "../ethereum/rules.ts";
import type { ListedAccount } from "../feed/feedMessage.ts";

/** Why a message's state is not verified. It is a label value of the metric. */
export type UnverifiedReason =
  | "gas"
  | "bloom"
  | "receiptsRoot"
  | "undecodable"
  | "foreignChain"
  | "unexecutable"
  | "rejected"
  | "failed"
  | "tooMuchState"
  | "late";

export interface DecodedTransaction {
  readonly hash: Hash;
  /** `undefined` for bytes that are no transaction of a known type. */
  readonly sender: Address | undefined;
}

/** Who pays for the gas of a transaction. */
export interface Payer {
  readonly sender: Address;
  readonly gasPrice: bigint;
}

/** The result of one transaction. */
export interface TransactionOutcome {
  readonly receipt: Receipt;
  /** Gas that the block's last transaction gives back (refunds.ts). */
  readonly refund: bigint;
}

export interface Executed extends TransactionOutcome {
  /** Before the refund. */
  readonly gasUsed: bigint;
  /** Undefined for a deposit. */
  readonly payer: Payer | undefined;
}

/** The outcome of one message. It is plain data, because threads send it to each other. */
export interface Execution {
  readonly transactions: readonly DecodedTransaction[];
  /** The root over all transactions of the block up to this message. */
  readonly transactionsRoot: Hash;
  /** Of its transactions. Present if they were executed and the result matches the message. */
  readonly outcomes: readonly TransactionOutcome[] | undefined;
  /** The outcomes of all earlier transactions of the block, if the message has changed their refunds. */
  readonly revised?: readonly TransactionOutcome[] | undefined;
  /** The writes. Present if the transactions were executed on the base that is the base now, and the result matches the message. */
  readonly changes: StateChanges | undefined;
  readonly unverified: UnverifiedReason | undefined;
  /** Details of `unverified`, for the log. */
  readonly cause?: string | undefined;
}

/** One message to execute. It is plain data, because threads send it to each other. */
export interface ExecutableMessage {
  readonly id: number;
  /** The message whose outcome this one starts from. `undefined` for the base block's state. */
  readonly before: number | undefined;
  readonly environment: PendingEnvironment;
  readonly index: number;
  readonly transactions: readonly Data[];
  /** A hint for prefetching, which is not verified. Empty if the feed has none. */
  readonly accessList: readonly ListedAccount[];
  /** The transaction that ends the block if it ends now, and gives back gas to those of the block so far (Lagoon). */
  readonly postExec?: Data | undefined;
  /** The message's fields of the block up to this message. The result of the execution must match them. */
  readonly expected: {
    readonly gasUsed: bigint;
    readonly logsBloom: Data;
    readonly receiptsRoot: Hash;
  };
}

/** The state below the messages. */
export interface MessageBase {
  readonly block: BlockId;
  /** The message whose outcome is that block's state. `undefined` if there is none. */
  readonly through: number | undefined;
  /** Increases when no value and no outcome of before holds any more. */
  readonly beginning: number;
}

/** The input of a message's run in its thread. */
export interface MessageInput {
  readonly message: ExecutableMessage;
  /** The next messages, which wait for this one. What they lack is fetched with what it lacks. */
  readonly ahead: readonly ExecutableMessage[];
  readonly base: MessageBase;
  readonly rules: Rules;
  /** False: the block's own rules are not known, and the thread only decodes the transactions. */
  readonly isExecutable: boolean;
  /** Time limit of one search for missing state, in milliseconds. */
  readonly maxSearchMs: number;
}

/** Executes messages one after another, each on the state after the one before. */
export interface Executor {
  execute(message: ExecutableMessage): Promise<Execution>;
  /** Moves the base to another block. `through`: the message whose outcome is that block's state, `undefined` if no outcome is. */
  rebase(base: BlockId, through: number | undefined): void;
  close(): Promise<void>;
}

/** Executes nothing, for a chain whose rules are not known. The view has the feed's data, and the node answers state reads. */
export const noExecutor: Executor = {
  execute: () => Promise.reject(new Error("this chain is not executed here")),
  rebase: () => undefined,
  close: () => Promise.resolve(),
};

const MISMATCHES: ReadonlySet<UnverifiedReason | undefined> = new Set(["gas", "bloom", "receiptsRoot"]);
const FAULTS: ReadonlySet<UnverifiedReason | undefined> = new Set(["undecodable", "foreignChain", "rejected"]);

/** Whether a commitment of the message differs from its execution. */
export const isMismatch = (reason: UnverifiedReason | undefined): boolean => MISMATCHES.has(reason);

/** Whether the fault is in the message itself. Otherwise it may be right, and could not be executed here. */
export const isFaultOfMessage = (reason: UnverifiedReason | undefined): boolean =>
  isMismatch(reason) || FAULTS.has(reason);
