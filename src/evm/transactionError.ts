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

/** A transaction that no block can hold. `message` is in geth's words (core/error.go). */
export class TransactionError extends Error {
  override readonly name = "TransactionError";
  readonly fault: TransactionFault;

  constructor(fault: TransactionFault, message: string) {
    super(message);
    this.fault = fault;
  }
}
