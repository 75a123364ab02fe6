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

const MISMATCHES: ReadonlySet<UnverifiedReason> = new Set(["gas", "bloom", "receiptsRoot"]);

/** Returns why an execution without an outcome gives no write set. */
export const writeSetFailureOf = (unverified: UnverifiedReason | undefined): WriteSetFailure =>
  unverified !== undefined && MISMATCHES.has(unverified) ? "mismatch" : "error";
