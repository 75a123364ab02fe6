import { bls12_381 } from "@noble/curves/bls12-381.js";
import { formatData } from "../../ethereum/hex.ts";

const { Fp2 } = bls12_381.fields;
const MODULUS = 0x1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaabn;
const FIELD_BYTES = 64;
const PADDING_BYTES = 16;
export const TOP_BYTES = "invalid field element top bytes";

/** A field element, or a point of one of the two groups. */
type Part = "fp" | "g1" | "g2";
const FIELDS_OF: Record<Part, number> = { fp: 1, g1: 2, g2: 4 };

/** The format of an input: items of these parts, each followed by a scalar. */
export interface BlsInput {
  readonly parts: readonly Part[];
  readonly scalarBytes: number;
  /** Whether points must be in the group of prime order. */
  readonly checksGroup: boolean;
}

/** Returns geth's text for the first fault in the input of a BLS12-381 precompile. Source: EIP-2537; geth, core/vm/contracts.go. */
export const describeBlsFault = (data: Uint8Array, { parts, scalarBytes, checksGroup }: BlsInput): string => {
  let at = 0;
  while (at < data.length) {
    for (const part of parts) {
      const end = at + FIELDS_OF[part] * FIELD_BYTES;
      const fault = faultOf(part, data.subarray(at, end), checksGroup);
      if (fault !== undefined) {
        return fault;
      }
      at = end;
    }
    at += scalarBytes;
  }
  return "invalid point: not on curve";
};

const faultOf = (part: Part, bytes: Uint8Array, checksGroup: boolean): string | undefined => {
  const fields: bigint[] = [];
  for (let at = 0; at < bytes.length; at += FIELD_BYTES) {
    const field = bytes.subarray(at, at + FIELD_BYTES);
    if (field.subarray(0, PADDING_BYTES).some((byte) => byte !== 0)) {
      return TOP_BYTES;
    }
    const value = BigInt(formatData(field));
    if (value >= MODULUS) {
      return "invalid fp.Element encoding";
    }
    fields.push(value);
  }
  // All zeros are the point at infinity.
  if (part === "fp" || fields.every((field) => field === 0n)) {
    return undefined;
  }
  const { isOnCurve, isInGroup } = part === "g1" ? checkG1(fields) : checkG2(fields);
  if (!isOnCurve) {
    return "invalid point: not on curve";
  }
  return checksGroup && !isInGroup ? `${part} point is not on correct subgroup` : undefined;
};

interface PointCheck {
  readonly isOnCurve: boolean;
  readonly isInGroup: boolean;
}

const NOT_IN_GROUP = "bad point: not in prime-order subgroup";

const check = (point: { assertValidity(): void }): PointCheck => {
  try {
    point.assertValidity();
    return { isOnCurve: true, isInGroup: true };
  } catch (error) {
    return { isOnCurve: error instanceof Error && error.message === NOT_IN_GROUP, isInGroup: false };
  }
};

const checkG1 = ([x = 0n, y = 0n]: readonly bigint[]): PointCheck => check(bls12_381.G1.Point.fromAffine({ x, y }));

const checkG2 = ([x0 = 0n, x1 = 0n, y0 = 0n, y1 = 0n]: readonly bigint[]): PointCheck =>
  check(bls12_381.G2.Point.fromAffine({ x: Fp2.fromBigTuple([x0, x1]), y: Fp2.fromBigTuple([y0, y1]) }));
