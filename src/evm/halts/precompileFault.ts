import type { Address } from "../../ethereum/hex.ts";
import { type BlsInput, describeBlsFault } from "./blsFault.ts";
import { modexpGas, modexpLengths, wordAt } from "./modexpGas.ts";

// geth's texts for inputs that a precompile rejects. Source: geth, core/vm/contracts.go, crypto/bn256/gnark.

const BN254_MODULUS = 0x30644e72e131a029b85045b68181585d97816a916871ca8d3c208c16d87cfd47n;
const BN254_BYTES = 32;
export const INPUT_LENGTH = "invalid input length";
export const PAIRING_SIZE = "bad elliptic curve pairing size";
export const BLOB_HASH_MISMATCH = "mismatched versioned hash";
export const BLOB_PROOF = "error verifying kzg proof";
/** EIP-7823 */
const MAX_MODEXP_BYTES = 1024n;

const at = (last: string): Address => `0x${last.padStart(40, "0")}`;
const MODEXP = at("05");
const BLAKE2F = at("09");
const POINT_EVALUATION = at("0a");
const BN254_PAIRING = at("08");

/** Bytes that the precompiles of bn254 read as points. Undefined: all of them. */
export const BN254_POINT_BYTES: ReadonlyMap<Address, number | undefined> = new Map([
  [at("06"), 128],
  [at("07"), 64],
  [BN254_PAIRING, undefined],
]);

const BLS_INPUTS: ReadonlyMap<Address, BlsInput> = new Map<Address, BlsInput>([
  [at("0b"), { parts: ["g1"], scalarBytes: 0, checksGroup: false }],
  [at("0c"), { parts: ["g1"], scalarBytes: 32, checksGroup: true }],
  [at("0d"), { parts: ["g2"], scalarBytes: 0, checksGroup: false }],
  [at("0e"), { parts: ["g2"], scalarBytes: 32, checksGroup: true }],
  [at("0f"), { parts: ["g1", "g2"], scalarBytes: 0, checksGroup: true }],
  [at("10"), { parts: ["fp"], scalarBytes: 0, checksGroup: false }],
  [at("11"), { parts: ["fp", "fp"], scalarBytes: 0, checksGroup: false }],
]);

export const describeBn254 = (data: Uint8Array, pointBytes: number | undefined): string => {
  const points = data.subarray(0, pointBytes);
  for (let offset = 0; offset < points.length; offset += BN254_BYTES) {
    if (wordAt(points, offset) >= BN254_MODULUS) {
      return "invalid fp.Element encoding";
    }
  }
  return "point is not on curve";
};

/** Returns the text for lengths above the limit of EIP-7823, or `undefined` if the gas does not suffice either. */
const describeModexp = (data: Uint8Array, gasLimit: bigint): string | undefined => {
  const isTooLong = modexpLengths(data).some((length) => length > MAX_MODEXP_BYTES);
  return isTooLong && modexpGas(data) <= gasLimit
    ? "one or more of base/exponent/modulus length exceeded 1024 bytes"
    : undefined;
};

const BLAKE2F_BYTES = 213;
const describeBlake2f = (data: Uint8Array): string =>
  data.length === BLAKE2F_BYTES ? "invalid final flag" : INPUT_LENGTH;

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
  readonly gasLimit: bigint;
}

/** Returns geth's text for revm's. */
export const describePrecompileFault = (fault: string, { address, data, gasLimit }: RejectedInput): string => {
  if (address === MODEXP) {
    return describeModexp(data, gasLimit) ?? "out of gas";
  }
  if (address === BLAKE2F) {
    return describeBlake2f(data);
  }
  if (address === POINT_EVALUATION) {
    return describePointEvaluation(fault);
  }
  if (fault.includes("length")) {
    return describeLength(address, data);
  }
  const bls = BLS_INPUTS.get(address);
  if (bls !== undefined) {
    return describeBlsFault(data, bls);
  }
  return BN254_POINT_BYTES.has(address) ? describeBn254(data, BN254_POINT_BYTES.get(address)) : fault;
};

const describePointEvaluation = (fault: string): string => {
  if (fault.includes("length")) {
    return INPUT_LENGTH;
  }
  return fault.includes("version") ? BLOB_HASH_MISMATCH : BLOB_PROOF;
};

/** Inputs of whole items are rejected only if there are too many of them. */
const describeLength = (address: Address, data: Uint8Array): string => {
  const [text, itemBytes] = TOO_LONG.get(address) ?? [INPUT_LENGTH, 1];
  if (data.length > 0 && data.length % itemBytes === 0 && itemBytes > 1) {
    return text;
  }
  return address === BN254_PAIRING ? PAIRING_SIZE : INPUT_LENGTH;
};
