import type { WriteSetFailure } from "../state/writeSet.ts";
import type { UnverifiedReason } from "./execution.ts";

const MISMATCHES: ReadonlySet<UnverifiedReason> = new Set(["gas", "bloom", "receiptsRoot"]);

/** Returns why an execution without an outcome gives no write set. */
export const writeSetFailureOf = (unverified: UnverifiedReason | undefined): WriteSetFailure =>
  unverified !== undefined && MISMATCHES.has(unverified) ? "mismatch" : "error";
