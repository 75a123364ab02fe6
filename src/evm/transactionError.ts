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
