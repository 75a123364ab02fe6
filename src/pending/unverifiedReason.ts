import { NotExecutableError } from "../evm/notExecutableError.ts";
import { TransactionError } from "../evm/transactionError.ts";
import type { UnverifiedReason } from "./execution.ts";
import { UnreadableStateError } from "./stateRounds.ts";

/** Returns why an error of an execution leaves a message without verified state. */
export const unverifiedReasonOf = (error: unknown): UnverifiedReason => {
  if (error instanceof NotExecutableError) {
    return "unexecutable";
  }
  if (error instanceof UnreadableStateError) {
    return error.reason;
  }
  return error instanceof TransactionError ? "rejected" : "failed";
};
