import type { CustomCrypto } from "@ethereumjs/common";
import { keccak256 } from "../../ethereum/keccak.ts";
import { verifyKzgProof } from "./kzg.ts";

/** Replaces functions that only create or verify blobs. The point evaluation precompile needs `verifyProof` alone. */
const unsupported = (): never => {
  throw new Error("unsupported KZG function: only verifyProof is available");
};

/** The cryptography that the library takes from its user: a fast hash, and the verification that it does not have. */
export const libraryCrypto = {
  keccak256,
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
