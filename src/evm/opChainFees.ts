import {
  BASE_FEE_VAULT,
  L1_BLOCK,
  L1_FEE_VAULT,
  type L1Attributes,
  l1Cost,
  OPERATOR_FEE_VAULT,
  operatorFee,
  readFootprintScalar,
  readL1Attributes,
} from "../ethereum/opFees.ts";
import type { Rules } from "../ethereum/rules.ts";
import type { ChainFees } from "./applyTransaction.ts";
import type { ExecutionState } from "./executionState.ts";

/** Reads the L1 attributes that the block's first deposit has written. */
export const l1AttributesOf = (state: ExecutionState): L1Attributes =>
  readL1Attributes((slot) => state.storageOf(L1_BLOCK, slot));

/** Reads only the scalar of the data footprint, which is one slot. */
export const footprintScalarOf = (state: ExecutionState): bigint =>
  readFootprintScalar((slot) => state.storageOf(L1_BLOCK, slot));

/** Returns the fees of an OP-stack chain besides gas, for a transaction with these EIP-2718 bytes. */
export const opChainFees = (rules: Rules, l1: L1Attributes, raw: Uint8Array): ChainFees => ({
  fixed: l1Cost(rules, l1, raw).fee,
  fixedTo: L1_FEE_VAULT,
  perGas: (gas) => operatorFee(rules, l1, gas),
  perGasTo: OPERATOR_FEE_VAULT,
  baseFeeTo: BASE_FEE_VAULT,
});
