import { larger, smaller } from "../../ethereum/bigintOrder.ts";
import { type Address, formatData } from "../../ethereum/hex.ts";
import { OUT_OF_GAS } from "./haltText.ts";

// geth's texts for inputs that a precompile rejects. Source: geth, core/vm/contracts.go, crypto/bn256/gnark.

const BN254_MODULUS = 0x30644e72e131a029b85045b68181585d97816a916871ca8d3c208c16d87cfd47n;
const WORD_BYTES = 32;
export const INPUT_LENGTH = "invalid input length";
export const PAIRING_SIZE = "bad elliptic curve pairing size";
export const BLOB_HASH_MISMATCH = "mismatched versioned hash";
export const BLOB_PROOF = "error verifying kzg proof";
export const TOP_BYTES = "invalid field element top bytes";
const FIELD_ENCODING = "invalid fp.Element encoding";

const at = (last: string): Address => `0x${last.padStart(40, "0")}`;
const MODEXP = at("05");
const BN254_PAIRING = at("08");

/** Bytes that the precompiles of bn254 read as points. Undefined: all of them. */
export const BN254_POINT_BYTES: ReadonlyMap<Address, number | undefined> = new Map([
  [at("06"), 128],
  [at("07"), 64],
  [BN254_PAIRING, undefined],
]);

/** geth's texts by a part of revm's, for inputs of the right length. Source: revm-precompile, PrecompileError. */
const TEXTS: readonly (readonly [part: string, text: string])[] = [
  ["Modexp limit", "one or more of base/exponent/modulus length exceeded 1024 bytes"],
  ["modexp", OUT_OF_GAS],
  ["blake2", "invalid final flag"],
  ["blob version", BLOB_HASH_MISMATCH],
  ["kzg", BLOB_PROOF],
  ["top bytes", TOP_BYTES],
  ["non-canonical", FIELD_ENCODING],
  ["point not on curve", "invalid point: not on curve"],
  ["g1 point not in correct subgroup", "g1 point is not on correct subgroup"],
  ["g2 point not in correct subgroup", "g2 point is not on correct subgroup"],
];

const wordAt = (data: Uint8Array, at: number): bigint => {
  const word = new Uint8Array(WORD_BYTES);
  word.set(data.subarray(at, at + WORD_BYTES));
  return BigInt(formatData(word));
};

/** EIP-7883. Complexity and iterations are bounded below. */
const MODEXP_MIN_GAS = 500n;
const SHORT_BYTES = 32n;
const SHORT_COMPLEXITY = 16n;
const BYTE_ITERATIONS = 16n;
const MODEXP_WORD_BYTES = 8n;
const BYTE_BITS = 8n;
const HEADER_BYTES = 3 * WORD_BYTES;

/** Returns the gas of MODEXP (EIP-7883). */
const modexpGas = (data: Uint8Array): bigint => {
  const [base, exponent, modulus] = [wordAt(data, 0), wordAt(data, WORD_BYTES), wordAt(data, 2 * WORD_BYTES)];
  const longest = larger(base, modulus);
  const words = (longest + MODEXP_WORD_BYTES - 1n) / MODEXP_WORD_BYTES;
  const complexity = longest <= SHORT_BYTES ? SHORT_COMPLEXITY : 2n * words * words;
  const start = base < BigInt(data.length) ? HEADER_BYTES + Number(base) : data.length;
  const head = wordAt(data, start) >> (BYTE_BITS * (SHORT_BYTES - smaller(exponent, SHORT_BYTES)));
  const bits = head === 0n ? 0 : head.toString(2).length - 1;
  const iterations = BYTE_ITERATIONS * (larger(exponent, SHORT_BYTES) - SHORT_BYTES) + BigInt(bits);
  return larger(complexity * larger(iterations, 1n), MODEXP_MIN_GAS);
};

const NOT_ON_CURVE = "point is not on curve";
const NOT_IN_SUBGROUP = "point is not in correct subgroup";
/** Coordinates of an item of the pairing: of G1 two, and of G2 four, each with its imaginary part first (EIP-197). */
const G1_WORDS = 2;
const PAIR_WORDS = 6;

const modulo = (value: bigint): bigint => ((value % BN254_MODULUS) + BN254_MODULUS) % BN254_MODULUS;

/** y^2 = x^3 + 3 (EIP-196). */
const isOnCurve = ([x = 0n, y = 0n]: readonly bigint[]): boolean => modulo(y * y - x * x * x - 3n) === 0n;

type Complex = readonly [real: bigint, imaginary: bigint];

const multiply = ([a, b]: Complex, [c, d]: Complex): Complex => [modulo(a * c - b * d), modulo(a * d + b * c)];

/** y^2 = x^3 + 3 / (9 + i) (EIP-197). */
const isOnTwist = ([xi = 0n, xr = 0n, yi = 0n, yr = 0n]: readonly bigint[]): boolean => {
  const x: Complex = [xr, xi];
  const y: Complex = [yr, yi];
  const [squared, cubed] = [multiply(y, y), multiply(multiply(x, x), x)];
  const [real, imaginary] = multiply([squared[0] - cubed[0], squared[1] - cubed[1]], [9n, 1n]);
  return real === 3n && imaginary === 0n;
};

/** Returns geth's text for a point. Undefined if it is on its curve. */
const pointFault = (point: readonly bigint[]): string | undefined => {
  if (point.some((coordinate) => coordinate >= BN254_MODULUS)) {
    return FIELD_ENCODING;
  }
  const isInfinity = point.every((coordinate) => coordinate === 0n);
  return isInfinity || (point.length === G1_WORDS ? isOnCurve(point) : isOnTwist(point)) ? undefined : NOT_ON_CURVE;
};

/**
 * Returns geth's text for an input that a precompile of bn254 rejects: that of the first wrong point. Bytes beyond the end of the
 * input are zero. `pointBytes`: undefined for the pairing.
 */
export const describeBn254 = (data: Uint8Array, pointBytes: number | undefined): string => {
  const words = Array.from({ length: Math.ceil((pointBytes ?? data.length) / WORD_BYTES) }, (_, index) =>
    wordAt(data, index * WORD_BYTES),
  );
  const itemWords = pointBytes === undefined ? PAIR_WORDS : G1_WORDS;
  for (let at = 0; at < words.length; at += itemWords) {
    const points = [words.slice(at, at + G1_WORDS), words.slice(at + G1_WORDS, at + itemWords)];
    const fault = points.map(pointFault).find((each) => each !== undefined);
    if (fault !== undefined) {
      return fault;
    }
  }
  return NOT_IN_SUBGROUP;
};

/** op-geth's texts for inputs above the limits of the OP stack, with the bytes of one item. Source: op-geth, core/vm/contracts.go. */
const TOO_LONG: ReadonlyMap<Address, readonly [text: string, itemBytes: number]> = new Map([
  [BN254_PAIRING, ["bad elliptic curve pairing input size", 192]],
  [at("0c"), ["g1 msm input size exceeds maximum", 160]],
  [at("0e"), ["g2 msm input size exceeds maximum", 288]],
  [at("0f"), ["pairing input size exceeds maximum", 384]],
]);

/** The input of a precompile that the module called. */
export interface RejectedInput {
  readonly address: Address;
  readonly data: Uint8Array;
  /** What the precompile may use. */
  readonly gas: bigint;
}

/** Returns geth's text for revm's. */
export const describePrecompileFault = (fault: string, { address, data, gas }: RejectedInput): string => {
  if (fault.includes("length")) {
    return describeLength(address, data);
  }
  if (BN254_POINT_BYTES.has(address)) {
    return describeBn254(data, BN254_POINT_BYTES.get(address));
  }
  // geth charges the gas before it compares the lengths.
  if (address === MODEXP && modexpGas(data) > gas) {
    return OUT_OF_GAS;
  }
  return TEXTS.find(([part]) => fault.includes(part))?.[1] ?? fault;
};

/** Inputs of whole items are rejected only if there are too many of them. */
const describeLength = (address: Address, data: Uint8Array): string => {
  const [text, itemBytes] = TOO_LONG.get(address) ?? [INPUT_LENGTH, 1];
  if (data.length > 0 && data.length % itemBytes === 0 && itemBytes > 1) {
    return text;
  }
  return address === BN254_PAIRING ? PAIRING_SIZE : INPUT_LENGTH;
};
