import secp256k1 from "secp256k1";
import { type Address, formatData } from "../../ethereum/hex.ts";
import { keccak256 } from "../../ethereum/keccak.ts";
import { type SignatureParts, type SignedTransaction, signatureParts } from "../../ethereum/transaction.ts";

const PUBLIC_KEY_AT = 1;
const ADDRESS_AT = 12;

/** Recovers the address of a signer. Returns `undefined` for an invalid signature. */
const recover = ({ digest, signature, recoveryId }: SignatureParts): Address | undefined => {
  try {
    const key = secp256k1.ecdsaRecover(signature, recoveryId, digest, false).subarray(PUBLIC_KEY_AT);
    return formatData(keccak256(key).subarray(ADDRESS_AT));
  } catch {
    // The client's signature is not a point of the curve.
    return undefined;
  }
};

/** Recovers the address of a signer from `r` and `s` without padding. Returns `undefined` for an invalid signature. */
export const recoverAddress = (
  digest: Uint8Array,
  recoveryId: 0 | 1,
  r: Uint8Array,
  s: Uint8Array,
): Address | undefined => {
  if (r.length > 32 || s.length > 32) {
    return undefined;
  }
  const signature = new Uint8Array(64);
  signature.set(r, 32 - r.length);
  signature.set(s, 64 - s.length);
  return recover({ digest, signature, recoveryId });
};

/** Recovers the sender of a transaction. Returns `undefined` for an invalid signature. */
export const recoverSender = (transaction: SignedTransaction): Address | undefined =>
  recover(signatureParts(transaction));
