import type { TransactionError, TransactionFault } from "../evm/transactionError.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import { SIMULATE_CODES } from "./codes.ts";

const CODE_OF: Partial<Record<TransactionFault, number>> = {
  nonceTooLow: SIMULATE_CODES.NONCE_TOO_LOW,
  nonceTooHigh: SIMULATE_CODES.NONCE_TOO_HIGH,
  senderHasCode: SIMULATE_CODES.SENDER_NOT_EOA,
  tipAboveFeeCap: CODES.INVALID_PARAMS,
  feeCapTooLow: SIMULATE_CODES.FEE_CAP_TOO_LOW,
  insufficientFunds: SIMULATE_CODES.INSUFFICIENT_FUNDS,
  intrinsicGas: SIMULATE_CODES.INTRINSIC_GAS,
  initCodeSize: SIMULATE_CODES.INIT_CODE_SIZE,
};

/** A call that no block can hold ends the whole request, in geth's words. */
export const transactionFault = (error: TransactionError, gas: bigint): RpcError =>
  new RpcError(CODE_OF[error.fault] ?? CODES.INTERNAL, `err: ${error.message} (supplied gas ${gas})`, { cause: error });
