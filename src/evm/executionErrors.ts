/** forebay cannot execute the request, because it needs a native contract or an unknown feature. A node must answer it. */
export class NotExecutableError extends Error {
  override readonly name = "NotExecutable";
}

/** The deadline of an execution has passed. */
export class DeadlineError extends Error {
  override readonly name = "DeadlineError";

  constructor() {
    super("the deadline of the execution has passed");
  }
}

/** A run reads more values than it may fetch. */
export class TooManyReadsError extends Error {
  override readonly name = "TooManyReadsError";
}

export type TransactionFault =
  | "nonceTooLow"
  | "nonceTooHigh"
  | "nonceMax"
  | "gasCap"
  | "senderHasCode"
  | "tipAboveFeeCap"
  | "feeCapTooLow"
  | "blobs"
  | "blobFeeCapTooLow"
  | "authorizations"
  | "insufficientFunds"
  | "blockGasLimit"
  | "intrinsicGas"
  | "floorGas"
  | "initCodeSize";

/** The transaction is invalid in any block. `message` is geth's text (core/error.go). */
export class TransactionError extends Error {
  override readonly name = "TransactionError";
  readonly fault: TransactionFault;

  constructor(fault: TransactionFault, message: string) {
    super(message);
    this.fault = fault;
  }
}
