import type { CustomCrypto } from "@ethereumjs/common";
import { ecrecover as recoverSlowly } from "@ethereumjs/util";
import secp256k1 from "secp256k1";
import { keccak256 } from "../ethereum/keccak.ts";
import { verifyKzgProof } from "./kzg.ts";

const COMPRESSION_BYTES = 1;

/** Public key (64 bytes) of a signature. The native module is 26 times as fast; where it fails to load, its own JavaScript takes over. */
const recover = (digest: Uint8Array, v: bigint, r: Uint8Array, s: Uint8Array, chainId?: bigint): Uint8Array => {
  const recovery = recoveryId(v, chainId);
  if (recovery !== 0 && recovery !== 1) return recoverSlowly(digest, v, r, s, chainId);
  const signature = new Uint8Array(64);
  signature.set(r, 32 - r.length);
  signature.set(s, 64 - s.length);
  return secp256k1.ecdsaRecover(signature, recovery, digest, false).subarray(COMPRESSION_BYTES);
};

/** EIP-155 and what was before it; typed transactions say 0 or 1. */
const recoveryId = (v: bigint, chainId?: bigint): number => {
  if (v === 0n || v === 1n) return Number(v);
  return Number(chainId === undefined ? v - 27n : v - (chainId * 2n + 35n));
};

const unused = (): never => {
  throw new Error("blobs are not made or checked here, only the point evaluation precompile needs KZG");
};

export const customCrypto: CustomCrypto = {
  keccak256,
  ecrecover: recover,
  kzg: {
    verifyProof: verifyKzgProof,
    blobToKzgCommitment: unused,
    computeBlobProof: unused,
    verifyBlobProofBatch: unused,
    computeCells: unused,
    computeCellsAndProofs: unused,
    recoverCellsAndProofs: unused,
    verifyCellKzgProofBatch: unused,
  },
};
