import secp256k1 from "secp256k1";
import { type Address, formatData, parseData } from "../../ethereum/hex.ts";
import { keccak256 } from "../../ethereum/keccak.ts";
import { concatBytes, encodeBytes, encodeList, encodeNumber, numberBytes } from "../../ethereum/rlp.ts";
import {
  type Authorization,
  type SignatureParts,
  type SignedTransaction,
  signatureParts,
} from "../../ethereum/transaction.ts";
import { MAX_NONCE } from "../checks/transactionChecks.ts";

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
const recoverAddress = (digest: Uint8Array, recoveryId: 0 | 1, r: Uint8Array, s: Uint8Array): Address | undefined => {
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

const MAGIC = Uint8Array.of(0x05);
/** Half of the order of secp256k1, the largest valid `s` (EIP-2). */
const HALF_ORDER = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n;

/** Recovers the account that signed an authorization. Returns `undefined` if it is skipped before the account is read: for another chain or an invalid signature. */
export const recoverAuthority = (authorization: Authorization, chainId: bigint): Address | undefined => {
  const { address, nonce, yParity, r, s } = authorization;
  if (authorization.chainId !== 0n && authorization.chainId !== chainId) {
    return undefined;
  }
  if (nonce >= MAX_NONCE || s > HALF_ORDER || yParity > 1n) {
    return undefined;
  }
  const signed = encodeList([
    encodeNumber(authorization.chainId),
    encodeBytes(parseData(address)),
    encodeNumber(nonce),
  ]);
  return recoverAddress(
    keccak256(concatBytes([MAGIC, signed])),
    yParity === 0n ? 0 : 1,
    numberBytes(r),
    numberBytes(s),
  );
};
