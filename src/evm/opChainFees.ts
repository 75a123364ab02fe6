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
import type { StateOverlay } from "./stateOverlay.ts";

/** As the block's first deposit has written them. */
export const l1AttributesOf = (state: StateOverlay): L1Attributes =>
  readL1Attributes((slot) => state.storageOf(L1_BLOCK, slot));

/** Of those attributes, the scalar of the data footprint alone: one slot. */
export const footprintScalarOf = (state: StateOverlay): bigint =>
  readFootprintScalar((slot) => state.storageOf(L1_BLOCK, slot));

/** What an OP-stack chain takes from the sender of these EIP-2718 bytes besides gas. */
export const opChainFees = (rules: Rules, l1: L1Attributes, raw: Uint8Array): ChainFees => ({
  fixed: l1Cost(rules, l1, raw).fee,
  fixedTo: L1_FEE_VAULT,
  perGas: (gas) => operatorFee(rules, l1, gas),
  perGasTo: OPERATOR_FEE_VAULT,
  baseFeeTo: BASE_FEE_VAULT,
});
