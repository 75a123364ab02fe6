import { smaller } from "../../ethereum/bigintOrder.ts";
import { GAS_PER_BLOB } from "../../ethereum/blockFees.ts";
import type { TransactionChecks } from "../engine.ts";
import { BLOB_TYPE, SET_CODE_TYPE, type TransactionMessage } from "../transactionMessage.ts";
import { intrinsicGas } from "./intrinsicGas.ts";
import {
  type CheckContext,
  checkAuthorizations,
  checkBlobs,
  checkExecutionCap,
  checkFees,
  checkFunds,
  checkLimits,
  checkNonce,
  checkSender,
} from "./transactionChecks.ts";

export const CONSENSUS_CHECKS: TransactionChecks = { nonce: true, sender: true, freeGas: false };

export interface Cost {
  readonly gasPrice: bigint;
  /** The sender pays neither the base fee nor a tip. */
  readonly isFree: boolean;
  readonly blobGas: bigint;
  readonly blobFee: bigint;
  readonly intrinsic: bigint;
  readonly floor: bigint;
}

/**
 * Checks a transaction before it runs, in geth's order, and returns its cost. `extraCost` is what the chain charges besides gas.
 * Throws TransactionError. Source: geth, core/state_transition.go, preCheck and execute.
 */
export const checkTransaction = (
  context: CheckContext,
  message: TransactionMessage,
  checks: TransactionChecks,
  extraCost = 0n,
): Cost => {
  const { engine, block } = context;
  const isFree = checks.freeGas && message.maxFeePerGas === 0n && message.maxPriorityFeePerGas === 0n;
  const hasFreeBlobs = checks.freeGas && message.maxFeePerBlobGas === 0n;
  if (checks.nonce) {
    checkNonce(context, message);
  }
  if (checks.sender) {
    checkSender(context, message);
  }
  if (!isFree && engine.isActive(1559)) {
    checkFees(context, message);
  }
  if (message.isBlob ?? message.type === BLOB_TYPE) {
    checkBlobs(context, message, hasFreeBlobs);
  }
  if (message.isSetCode ?? message.type === SET_CODE_TYPE) {
    checkAuthorizations(message);
  }
  const blobGas = BigInt(message.blobVersionedHashes.length) * GAS_PER_BLOB;
  const blobFee = hasFreeBlobs ? 0n : blobGas * block.blobBaseFee;
  const gasPrice = isFree ? 0n : effectiveGasPrice(context, message);
  checkFunds(context, message, { blobGas, charged: message.gas * gasPrice + blobFee, extraCost });
  const { intrinsic, floor } = intrinsicGas(engine, message);
  checkLimits(engine, message, { intrinsic, floor });
  if (checks.liftsExecutionCap !== true) {
    checkExecutionCap(engine, { intrinsic, floor });
  }
  return { gasPrice, isFree, blobGas, blobFee, intrinsic, floor };
};

const effectiveGasPrice = ({ engine, block }: CheckContext, message: TransactionMessage): bigint => {
  if (!engine.isActive(1559)) {
    return message.maxFeePerGas;
  }
  return smaller(block.baseFee + message.maxPriorityFeePerGas, message.maxFeePerGas);
};
