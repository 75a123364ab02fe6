import type { Hash } from "../ethereum/hex.ts";
import {
  L1_BLOCK,
  type L1Attributes,
  l1Cost,
  operatorFee,
  readFootprintScalar,
  readL1Attributes,
} from "../ethereum/opFees.ts";
import type { Rules } from "../ethereum/rules.ts";
import type { TransactionContext } from "./engine.ts";

type L1State = Pick<TransactionContext, "state" | "reads">;

/** Reads the L1 attributes that the block's first deposit has written. */
export const l1AttributesOf = (from: L1State): L1Attributes => readL1Attributes((slot) => slotOf(from, slot));

/** Reads only the scalar of the data footprint, which is one slot. */
export const footprintScalarOf = (from: L1State): bigint => readFootprintScalar((slot) => slotOf(from, slot));

const slotOf = ({ state, reads }: L1State, slot: Hash): Uint8Array => {
  reads?.slot(L1_BLOCK, slot);
  return state.storageOf(L1_BLOCK, slot);
};

/** Returns what an OP-stack chain charges besides gas for a transaction with these EIP-2718 bytes and this gas limit. */
export const opChainFees = (rules: Rules, l1: L1Attributes, raw: Uint8Array, gas: bigint): bigint =>
  l1Cost(rules, l1, raw).fee + operatorFee(rules, l1, gas);
