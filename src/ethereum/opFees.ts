import { larger } from "./bigintOrder.ts";
import { type Address, formatData, formatWord, type Hash } from "./hex.ts";
import { isOpForkActive, type OpFork, type Rules } from "./rules.ts";
import { DEPOSIT_TYPE } from "./transaction.ts";

/** Predeploys. Source: https://specs.optimism.io/protocol/predeploys.html */
export const L1_BLOCK: Address = "0x4200000000000000000000000000000000000015";
export const BASE_FEE_VAULT: Address = "0x4200000000000000000000000000000000000019";
export const L1_FEE_VAULT: Address = "0x420000000000000000000000000000000000001a";
export const OPERATOR_FEE_VAULT: Address = "0x420000000000000000000000000000000000001b";

/** The L1 values in the first deposit of a block. Overhead and scalar of Bedrock are not used since Ecotone. */
export interface L1Attributes {
  readonly baseFee: bigint;
  readonly blobBaseFee: bigint;
  readonly baseFeeScalar: bigint;
  readonly blobBaseFeeScalar: bigint;
  readonly overhead: bigint;
  readonly scalar: bigint;
  readonly operatorFeeScalar: bigint;
  readonly operatorFeeConstant: bigint;
  readonly daFootprintGasScalar: bigint;
}

const DEFAULT_FOOTPRINT_SCALAR = 400n;
const MILLION = 1_000_000n;
const MIN_SIZE = 100_000_000n;
const FASTLZ_COEFFICIENT = 836_500n;
const FASTLZ_INTERCEPT = 42_585_600n;
const ZERO_BYTE_GAS = 4n;
const BYTE_GAS = 16n;
/** Before Regolith, the bytes of an empty signature were charged. Source: op-geth, core/types/rollup_cost.go. */
const SIGNATURE_GAS = 68n * BYTE_GAS;

const BEDROCK_SELECTOR = "0x015d8eb9";
/** The selectors that identify a fork. Those before Isthmus are ambiguous. Source: docs/reference/op-stack.md, L1 attributes. */
const SELECTOR_FORKS: ReadonlyMap<string, OpFork> = new Map([
  ["0x098999be", "isthmus"],
  ["0x3db6be2b", "jovian"],
]);
const WORD = 32;

/** Numbers of so many bytes are computed without text. */
const EXACT_BYTES = 6;

/** Returns the number in a part of big-endian bytes. Of a part that goes beyond the end, only the bytes before the end count. */
const numberAt = (bytes: Uint8Array, from: number, to: number): bigint => {
  const end = Math.min(to, bytes.length);
  let at = from;
  while (at < end && bytes[at] === 0) {
    at++;
  }
  if (end - at > EXACT_BYTES) {
    return BigInt(formatData(bytes.subarray(at, end)));
  }
  let number = 0;
  for (; at < end; at++) {
    number = number * 256 + (bytes[at] ?? 0);
  }
  return BigInt(number);
};

const footprintScalar = (scalar: bigint): bigint => (scalar === 0n ? DEFAULT_FOOTPRINT_SCALAR : scalar);

/** Reads the calldata of the L1-attributes deposit. Later forks appended fields to the packed layout of Ecotone. */
export const parseL1Attributes = (calldata: Uint8Array): L1Attributes => {
  if (formatData(calldata.subarray(0, 4)) === BEDROCK_SELECTOR) {
    return parseBedrock(calldata);
  }
  const number = (from: number, to: number) => numberAt(calldata, from, to);
  return {
    baseFeeScalar: number(4, 8),
    blobBaseFeeScalar: number(8, 12),
    baseFee: number(36, 68),
    blobBaseFee: number(68, 100),
    operatorFeeScalar: number(164, 168),
    operatorFeeConstant: number(168, 176),
    daFootprintGasScalar: footprintScalar(number(176, 178)),
    overhead: 0n,
    scalar: 0n,
  };
};

/** Returns the fork of the L1 fee rules in the calldata of an L1-attributes deposit. Later forks return Jovian too. */
export const l1AttributesFork = (calldata: Uint8Array): OpFork | undefined =>
  SELECTOR_FORKS.get(formatData(calldata.subarray(0, 4)));

const parseBedrock = (calldata: Uint8Array): L1Attributes => {
  const word = (at: number) => numberAt(calldata, 4 + at * WORD, 4 + (at + 1) * WORD);
  return {
    baseFee: word(2),
    overhead: word(6),
    scalar: word(7),
    blobBaseFee: 0n,
    baseFeeScalar: 0n,
    blobBaseFeeScalar: 0n,
    operatorFeeScalar: 0n,
    operatorFeeConstant: 0n,
    daFootprintGasScalar: DEFAULT_FOOTPRINT_SCALAR,
  };
};

/** Returns a slot's value, with or without leading zeros. */
type ReadSlot = (slot: Hash) => Uint8Array;

/** The slots of L1Block. Source: optimism, L1Block.sol. */
const BASE_FEE_SLOT = formatWord(1);
const SCALARS_SLOT = formatWord(3);
const OVERHEAD_SLOT = formatWord(5);
const SCALAR_SLOT = formatWord(6);
const BLOB_BASE_FEE_SLOT = formatWord(7);
const OPERATOR_SLOT = formatWord(8);

/** Returns the number at these bytes of a word whose leading zeros may be missing. */
const partOf = (value: Uint8Array, from = 0, to = WORD): bigint => {
  const missing = WORD - value.length;
  return numberAt(value, Math.max(0, from - missing), Math.max(0, to - missing));
};

const footprintPart = (operator: Uint8Array): bigint => footprintScalar(partOf(operator, 18, 20));

/** From L1Block's storage. */
export const readFootprintScalar = (read: ReadSlot): bigint => footprintPart(read(OPERATOR_SLOT));

/** From L1Block's storage. */
export const readL1Attributes = (read: ReadSlot): L1Attributes => {
  const scalars = read(SCALARS_SLOT);
  const operator = read(OPERATOR_SLOT);
  return {
    baseFee: partOf(read(BASE_FEE_SLOT)),
    blobBaseFee: partOf(read(BLOB_BASE_FEE_SLOT)),
    baseFeeScalar: partOf(scalars, 16, 20),
    blobBaseFeeScalar: partOf(scalars, 20, 24),
    overhead: partOf(read(OVERHEAD_SLOT)),
    scalar: partOf(read(SCALAR_SLOT)),
    operatorFeeScalar: partOf(operator, 20, 24),
    operatorFeeConstant: partOf(operator, 24, 32),
    daFootprintGasScalar: footprintPart(operator),
  };
};

/** Returns the compressed size of a transaction in bytes, times a million (Fjord). */
const estimateSize = (raw: Uint8Array): bigint =>
  larger(FASTLZ_COEFFICIENT * BigInt(fastLzLength(raw)) - FASTLZ_INTERCEPT, MIN_SIZE);

const calldataGas = (raw: Uint8Array): bigint => {
  let zeros = 0;
  for (const byte of raw) {
    if (byte === 0) {
      zeros++;
    }
  }
  return BigInt(zeros) * ZERO_BYTE_GAS + BigInt(raw.length - zeros) * BYTE_GAS;
};

interface L1Cost {
  readonly fee: bigint;
  readonly gasUsed: bigint;
}

const NO_COST: L1Cost = { fee: 0n, gasUsed: 0n };

/** Returns the sender's fee for the data on L1. Source: docs/reference/op-stack.md, Fees and receipts. */
export const l1Cost = (rules: Rules, l1: L1Attributes, raw: Uint8Array): L1Cost =>
  raw[0] === DEPOSIT_TYPE ? NO_COST : l1DataCost(rules, l1, raw);

/** Returns the fee for the data of any transaction. A deposit does not pay it. */
export const l1DataCost = (rules: Rules, l1: L1Attributes, raw: Uint8Array): L1Cost => {
  if (usesBedrockFee(rules, l1)) {
    const gasUsed = calldataGas(raw) + (isOpForkActive(rules, "regolith") ? 0n : SIGNATURE_GAS) + l1.overhead;
    return { gasUsed, fee: (gasUsed * l1.baseFee * l1.scalar) / MILLION };
  }
  const scaled = BYTE_GAS * l1.baseFee * l1.baseFeeScalar + l1.blobBaseFee * l1.blobBaseFeeScalar;
  if (isOpForkActive(rules, "fjord")) {
    const size = estimateSize(raw);
    return { gasUsed: (size * BYTE_GAS) / MILLION, fee: (size * scaled) / (MILLION * MILLION) };
  }
  const gasUsed = calldataGas(raw);
  return { gasUsed, fee: (gasUsed * scaled) / (BYTE_GAS * MILLION) };
};

/** The first block of Ecotone has no scalars yet. Source: op-geth, core/types/rollup_cost.go, NewL1CostFunc. */
const usesBedrockFee = (rules: Rules, { baseFeeScalar, blobBaseFeeScalar, blobBaseFee }: L1Attributes): boolean =>
  !isOpForkActive(rules, "ecotone") || (baseFeeScalar === 0n && blobBaseFeeScalar === 0n && blobBaseFee === 0n);

/** Returns the operator fee for an amount of gas. Source: docs/reference/op-stack.md, Fees and receipts. */
export const operatorFee = (rules: Rules, l1: L1Attributes, gas: bigint): bigint => {
  if (!isOpForkActive(rules, "isthmus")) {
    return 0n;
  }
  const { operatorFeeScalar: scalar, operatorFeeConstant: constant } = l1;
  return (isOpForkActive(rules, "jovian") ? gas * scalar * 100n : (gas * scalar) / MILLION) + constant;
};

/** Returns what a transaction adds to the block's `blobGasUsed` since Jovian. A deposit adds nothing, though receipts name it. */
export const dataFootprint = (l1: L1Attributes, raw: Uint8Array): bigint =>
  (estimateSize(raw) / MILLION) * l1.daFootprintGasScalar;

/** Returns the footprint of a transaction with the smallest compressed size (Jovian). */
export const smallestFootprint = (scalar: bigint): bigint => (MIN_SIZE / MILLION) * scalar;

const HASH_SIZE = 8_192;
/** The table of positions. Each run clears it. 32 kB a transaction would fill the young heap. */
const SEEN = new Int32Array(HASH_SIZE);
const MAX_DISTANCE = 8_192;
const MAX_LITERAL = 32;
const MAX_MATCH = 262;
/** No match begins within this number of bytes before the end. */
const MIN_TAIL = 13;
/** No match includes the last bytes of the input: this number of them. */
const MATCH_TAIL = 4;

const read24 = (bytes: Uint8Array, at: number): number =>
  (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8) | ((bytes[at + 2] ?? 0) << 16);

const hash = (value: number): number => ((Math.imul(value, 2_654_435_769) >>> 0) >> 19) & (HASH_SIZE - 1);

/** Returns the encoded length of `count` literal bytes. */
const literalsLength = (count: number): number => {
  const whole = Math.floor(count / MAX_LITERAL);
  const remainder = count % MAX_LITERAL;
  return whole * (MAX_LITERAL + 1) + (remainder > 0 ? remainder + 1 : 0);
};

/** Returns the encoded length of a match of `length` bytes. */
const matchEncodedLength = (length: number): number => {
  const whole = Math.floor((length - 1) / MAX_MATCH);
  const remainder = (length - 1) % MAX_MATCH;
  return whole * 3 + (remainder >= 6 ? 3 : 2);
};

/** Counts the bytes after the first three that match at `reference` and `at`. The first different byte counts too, as in FastLZ. */
const countMatched = (bytes: Uint8Array, reference: number, at: number): number => {
  const limit = bytes.length - MATCH_TAIL - (at + 3);
  let same = 0;
  while (same < limit && bytes[reference + 3 + same] === bytes[at + 3 + same]) {
    same++;
  }
  return same < limit ? same + 1 : same;
};

/**
 * Returns the length of `bytes` after compression with FastLZ (level 1), in bytes.
 * The OP stack estimates a transaction's size with it since Fjord.
 * Source: https://specs.optimism.io/protocol/fjord/exec-engine.html#fjord-l1-cost-fee-changes-fastlz-estimator
 */
export const fastLzLength = (bytes: Uint8Array): number => {
  const seen = SEEN.fill(0);
  const limit = bytes.length - MIN_TAIL;
  let length = 0;
  let anchor = 0;
  let at = 2;
  while (at < limit) {
    let distance = 0;
    let reference = 0;
    let value = 0;
    do {
      value = read24(bytes, at);
      const slot = hash(value);
      reference = seen[slot] ?? 0;
      seen[slot] = at;
      distance = at - reference;
      if (at >= limit) {
        break;
      }
      at++;
    } while (distance >= MAX_DISTANCE || value !== read24(bytes, reference));
    if (at >= limit) {
      break;
    }
    at--;
    if (at > anchor) {
      length += literalsLength(at - anchor);
    }
    const matched = countMatched(bytes, reference, at);
    length += matchEncodedLength(matched);
    at += matched;
    for (const end = at + 2; at < end; at++) {
      seen[hash(read24(bytes, at))] = at;
    }
    anchor = at;
  }
  return length + literalsLength(bytes.length - anchor);
};
