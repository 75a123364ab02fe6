import {
  L1_BLOCK,
  type L1Attributes,
  l1Cost,
  operatorFee,
  readFootprintScalar,
  readL1Attributes,
} from "../ethereum/opFees.ts";
import type { Rules } from "../ethereum/rules.ts";
import type { ExecutionState } from "./executionState.ts";

/** Reads the L1 attributes that the block's first deposit has written. */
export const l1AttributesOf = (state: ExecutionState): L1Attributes =>
  readL1Attributes((slot) => state.storageOf(L1_BLOCK, slot));

/** Reads only the scalar of the data footprint, which is one slot. */
export const footprintScalarOf = (state: ExecutionState): bigint =>
  readFootprintScalar((slot) => state.storageOf(L1_BLOCK, slot));

/** Returns what an OP-stack chain charges besides gas for a transaction with these EIP-2718 bytes and this gas limit. */
export const opChainFees = (rules: Rules, l1: L1Attributes, raw: Uint8Array, gas: bigint): bigint =>
  l1Cost(rules, l1, raw).fee + operatorFee(rules, l1, gas);
