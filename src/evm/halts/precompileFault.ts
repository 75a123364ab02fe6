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

/** The gas for numbers of this length is above every gas limit (EIP-7883). */
const UNPAYABLE_BYTES = 2n ** 32n;

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

/** Returns geth's text for an input that a precompile of bn254 rejects. Bytes beyond the end of the input are zero. */
export const describeBn254 = (data: Uint8Array, pointBytes: number | undefined): string => {
  const points = data.subarray(0, pointBytes);
  for (let offset = 0; offset < points.length; offset += WORD_BYTES) {
    if (wordAt(points, offset) >= BN254_MODULUS) {
      return FIELD_ENCODING;
    }
  }
  return "point is not on curve";
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
}

/** Returns geth's text for revm's. */
export const describePrecompileFault = (fault: string, { address, data }: RejectedInput): string => {
  if (fault.includes("length")) {
    return describeLength(address, data);
  }
  if (BN254_POINT_BYTES.has(address)) {
    return describeBn254(data, BN254_POINT_BYTES.get(address));
  }
  if (address === MODEXP && [0, 1, 2].some((number) => wordAt(data, number * WORD_BYTES) >= UNPAYABLE_BYTES)) {
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
