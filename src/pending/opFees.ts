import type { Address, Hash } from "../chain/hex.ts";
import { formatQuantity } from "../chain/hex.ts";
import { isOpForkActive, type Rules } from "../chain/rules.ts";
import type { ChainFees } from "../evm/applyTransaction.ts";
import type { StateOverlay } from "../evm/stateOverlay.ts";
import type { ReceiptExtra } from "./execution.ts";
import { fastLzLength } from "./fastLz.ts";

const L1_BLOCK: Address = "0x4200000000000000000000000000000000000015";
const BASE_FEE_VAULT: Address = "0x4200000000000000000000000000000000000019";
const L1_FEE_VAULT: Address = "0x420000000000000000000000000000000000001a";
const OPERATOR_FEE_VAULT: Address = "0x420000000000000000000000000000000000001b";

/** What the L1-attributes deposit of a block has written into L1Block. */
export interface L1Attributes {
  readonly baseFee: bigint;
  readonly blobBaseFee: bigint;
  readonly baseFeeScalar: bigint;
  readonly blobBaseFeeScalar: bigint;
  readonly operatorFeeScalar: bigint;
  readonly operatorFeeConstant: bigint;
  readonly daFootprintGasScalar: bigint;
}

const slotOf = (slot: number): Hash => `0x${slot.toString(16).padStart(64, "0")}`;

/** Bytes `from` to `to` of a word, which the overlay holds without leading zeros. */
const part = (value: Uint8Array, from = 0, to = 32): bigint => {
  const hex = value
    .toHex()
    .padStart(64, "0")
    .slice(from * 2, to * 2);
  return BigInt(`0x${hex}`);
};

/** Layout: flashblocks.md 3.2. */
export const readL1Attributes = (state: StateOverlay): L1Attributes => {
  const read = (slot: number) => state.storageOf(L1_BLOCK, slotOf(slot));
  const scalars = read(3);
  const operator = read(8);
  const footprint = part(operator, 18, 20);
  return {
    baseFee: part(read(1)),
    blobBaseFee: part(read(7)),
    baseFeeScalar: part(scalars, 16, 20),
    blobBaseFeeScalar: part(scalars, 20, 24),
    operatorFeeScalar: part(operator, 20, 24),
    operatorFeeConstant: part(operator, 24, 32),
    daFootprintGasScalar: footprint === 0n ? DEFAULT_DA_FOOTPRINT_SCALAR : footprint,
  };
};

const DEFAULT_DA_FOOTPRINT_SCALAR = 400n;
const MIN_ESTIMATE = 100_000_000n;
const FASTLZ_COEFFICIENT = 836_500n;
const FASTLZ_INTERCEPT = 42_585_600n;
const MILLION = 1_000_000n;

/** Bytes of a compressed transaction, times a million (Fjord). */
const estimateSize = (raw: Uint8Array): bigint => {
  const estimate = FASTLZ_COEFFICIENT * BigInt(fastLzLength(raw)) - FASTLZ_INTERCEPT;
  return estimate > MIN_ESTIMATE ? estimate : MIN_ESTIMATE;
};

const calldataGas = (raw: Uint8Array): bigint => raw.reduce((gas, byte) => gas + (byte === 0 ? 4n : 16n), 0n);

const isFjord = (rules: Rules): boolean => isOpForkActive(rules, "fjord");

/** OP stack, specs/protocol/{ecotone,fjord}/: what posting the transaction to L1 costs. */
export const l1Cost = (rules: Rules, l1: L1Attributes, raw: Uint8Array): { fee: bigint; gasUsed: bigint } => {
  const scaled = 16n * l1.baseFee * l1.baseFeeScalar + l1.blobBaseFee * l1.blobBaseFeeScalar;
  if (!isFjord(rules)) {
    const gasUsed = calldataGas(raw);
    return { gasUsed, fee: (gasUsed * scaled) / (16n * MILLION) };
  }
  const size = estimateSize(raw);
  return { gasUsed: (size * 16n) / MILLION, fee: (size * scaled) / (MILLION * MILLION) };
};

/** OP stack, specs/protocol/{isthmus,jovian}/exec-engine. */
export const operatorFee = (rules: Rules, l1: L1Attributes, gas: bigint): bigint => {
  if (!isOpForkActive(rules, "isthmus")) return 0n;
  const { operatorFeeScalar: scalar, operatorFeeConstant: constant } = l1;
  return (isOpForkActive(rules, "jovian") ? gas * scalar * 100n : (gas * scalar) / MILLION) + constant;
};

/** What an OP chain takes from the sender of a transaction besides gas. */
export const opFees = (rules: Rules, l1: L1Attributes, raw: Uint8Array): ChainFees => ({
  fixed: l1Cost(rules, l1, raw).fee,
  fixedTo: L1_FEE_VAULT,
  perGas: (gas) => operatorFee(rules, l1, gas),
  perGasTo: OPERATOR_FEE_VAULT,
  baseFeeTo: BASE_FEE_VAULT,
});

/** Jovian: what a transaction counts for in the block's `blobGasUsed`. */
export const daFootprint = (l1: L1Attributes, raw: Uint8Array): bigint =>
  (estimateSize(raw) / MILLION) * l1.daFootprintGasScalar;

/** What op-geth and op-reth add to the receipt of a transaction that is no deposit. */
export const opReceiptExtra = (rules: Rules, l1: L1Attributes, raw: Uint8Array): ReceiptExtra => {
  const { fee, gasUsed } = l1Cost(rules, l1, raw);
  const hasOperatorFee = l1.operatorFeeScalar > 0n || l1.operatorFeeConstant > 0n;
  return {
    l1GasPrice: formatQuantity(l1.baseFee),
    l1GasUsed: formatQuantity(gasUsed),
    l1Fee: formatQuantity(fee),
    l1BaseFeeScalar: formatQuantity(l1.baseFeeScalar),
    l1BlobBaseFee: formatQuantity(l1.blobBaseFee),
    l1BlobBaseFeeScalar: formatQuantity(l1.blobBaseFeeScalar),
    ...(isOpForkActive(rules, "isthmus") && hasOperatorFee
      ? {
          operatorFeeScalar: formatQuantity(l1.operatorFeeScalar),
          operatorFeeConstant: formatQuantity(l1.operatorFeeConstant),
        }
      : {}),
    ...(isOpForkActive(rules, "jovian")
      ? {
          daFootprintGasScalar: formatQuantity(l1.daFootprintGasScalar),
          blobGasUsed: formatQuantity(daFootprint(l1, raw)),
        }
      : {}),
  };
};
