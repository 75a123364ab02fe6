import { bls12_381 } from "@noble/curves/bls12-381.js";

/**
 * [tau]G2 of Ethereum's trusted setup. The verification of a proof needs no other part of it.
 * Source: https://github.com/ethereum/consensus-specs/blob/master/specs/deneb/polynomial-commitments.md
 */
const SETUP_G2 =
  "b5bfd7dd8cdeb128843bc287230af38926187075cbfbefa81009a2ce615ac53d2914e5870cb452d2afaaab24f3499f72185cbfee53492714734429b7b38608e23926c911cceceac9a36851477ba4c60b087041de621000edc98edada20c1def2";

const { G1, G2, fields, pairingBatch } = bls12_381;
const { Fr, Fp12 } = fields;

/**
 * Verifies a KZG proof: e(C - [y]G1, -G2) * e(proof, [tau - z]G2) must be one. Arguments are hex.
 * Throws if an argument is invalid. Source: EIP-4844, `verify_kzg_proof`.
 */
export const verifyKzgProof = (commitment: string, z: string, y: string, proof: string): boolean => {
  const point = G1.Point.fromHex(commitment.slice(2));
  const witness = G1.Point.fromHex(proof.slice(2));
  point.assertValidity();
  witness.assertValidity();
  const shifted = G2.Point.fromHex(SETUP_G2).subtract(multiply(G2.Point.BASE, scalar(z)));
  const difference = point.subtract(multiply(G1.Point.BASE, scalar(y)));
  const pairs = [
    { g1: difference, g2: G2.Point.BASE.negate() },
    { g1: witness, g2: shifted },
  ].filter(({ g1, g2 }) => !g1.is0() && !g2.is0());
  return pairs.length === 0 || Fp12.eql(pairingBatch(pairs), Fp12.ONE);
};

const scalar = (hex: string): bigint => {
  const value = BigInt(hex);
  // The precompile recognizes an invalid input by the word C_KZG_BADARGS.
  if (value >= Fr.ORDER) {
    throw new Error("C_KZG_BADARGS: not a field element");
  }
  return value;
};

const multiply = <P extends { multiplyUnsafe(by: bigint): P }>(point: P, by: bigint): P => point.multiplyUnsafe(by);
