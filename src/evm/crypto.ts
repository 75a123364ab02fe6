import type { CustomCrypto } from "@ethereumjs/common";
import { ecrecover as recoverSlowly } from "@ethereumjs/util";
import secp256k1 from "secp256k1";
import { keccak256 } from "../ethereum/keccak.ts";
import { verifyKzgProof } from "./kzg.ts";

const COMPRESSION_BYTES = 1;

/**
 * Returns the public key (64 bytes) of a signature. The native module is 26 times as fast as JavaScript.
 * If the native module fails to load, `secp256k1` falls back to its own JavaScript.
 */
const recover: typeof recoverSlowly = (...signed) => {
  const [digest, v, r, s, chainId] = signed;
  const recovery = recoveryId(v, chainId);
  if (recovery !== 0 && recovery !== 1) {
    return recoverSlowly(...signed);
  }
  const signature = new Uint8Array(64);
  signature.set(r, 32 - r.length);
  signature.set(s, 64 - s.length);
  return secp256k1.ecdsaRecover(signature, recovery, digest, false).subarray(COMPRESSION_BYTES);
};

/** Returns the recovery id of `v`. Typed transactions have 0 or 1, legacy transactions the values of EIP-155 or 27 and 28. */
const recoveryId = (v: bigint, chainId?: bigint): number => {
  if (v === 0n || v === 1n) {
    return Number(v);
  }
  return Number(chainId === undefined ? v - 27n : v - (chainId * 2n + 35n));
};

/** Replaces functions that only create or verify blobs. The point evaluation precompile needs `verifyProof` alone. */
const unsupported = (): never => {
  throw new Error("unsupported KZG function: only verifyProof is available");
};

/** Fast implementations of the cryptography that the EVM library uses. */
export const customCrypto = {
  keccak256,
  ecrecover: recover,
  kzg: {
    verifyProof: verifyKzgProof,
    blobToKzgCommitment: unsupported,
    computeBlobProof: unsupported,
    verifyBlobProofBatch: unsupported,
    computeCells: unsupported,
    computeCellsAndProofs: unsupported,
    recoverCellsAndProofs: unsupported,
    verifyCellKzgProofBatch: unsupported,
  },
} satisfies CustomCrypto;
