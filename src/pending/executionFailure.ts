import type { WriteSetFailure } from "../state/writeSet.ts";
import type { UnverifiedReason } from "./execution.ts";

const WRONG: ReadonlySet<UnverifiedReason> = new Set([
  "gas",
  "bloom",
  "receiptsRoot",
  "undecodable",
  "foreignChain",
  "rejected",
]);

/** Whether the reason is in the message itself. Otherwise it may be right, and could not be executed here. */
export const isWrongMessage = (unverified: UnverifiedReason | undefined): boolean =>
  unverified !== undefined && WRONG.has(unverified);

/** These happen to single messages. Each of the others would happen to every block again, or has been waited for. */
const SINGLE: ReadonlySet<UnverifiedReason> = new Set(["failed", "unreadable", "tooMuchState"]);

/**
 * Whether the message and those after it stay hidden behind verified ones. The state of these is true, and a node's may be older.
 * A message that this version cannot execute is shown, because such a chain would have no pre-confirmations otherwise.
 * So is a late one: a block time has passed, in which the verified ones were shown.
 */
export const isHiddenBehindVerified = (unverified: UnverifiedReason | undefined): boolean =>
  unverified !== undefined && (WRONG.has(unverified) || SINGLE.has(unverified));

const MISMATCHES: ReadonlySet<UnverifiedReason> = new Set(["gas", "bloom", "receiptsRoot"]);

/** Returns why an execution without an outcome gives no write set. */
export const writeSetFailureOf = (unverified: UnverifiedReason | undefined): WriteSetFailure =>
  unverified !== undefined && MISMATCHES.has(unverified) ? "mismatch" : "error";
