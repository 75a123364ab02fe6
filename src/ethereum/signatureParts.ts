import { keccak256 } from "./keccak.ts";
import { bytesLength, concatBytes, encodeList, encodeNumber, numberBytes } from "./rlp.ts";
import type { SignedTransaction } from "./transaction.ts";

/** The input of sender recovery. `signature` is r and s, 32 bytes each. */
export interface SignatureParts {
  readonly digest: Uint8Array;
  readonly signature: Uint8Array;
  readonly recoveryId: 0 | 1;
}

/** Derives the input of sender recovery from the raw bytes, without encoding the transaction again. */
export const signatureParts = (transaction: SignedTransaction): SignatureParts => {
  const { raw, signature } = transaction;
  const isLegacy = transaction.type === 0;
  const v = isLegacy ? transaction.v : BigInt(signature.yParity);
  const tail = [v, signature.r, signature.s].reduce((sum, part) => sum + bytesLength(numberBytes(part)), 0);
  const listAt = isLegacy ? 0 : 1;
  const listByte = raw[listAt] ?? 0;
  const start = listAt + (listByte < 0xf8 ? 1 : listByte - 0xf7 + 1);
  // The signed fields precede the signature with the same bytes. Only the prefix of the list differs.
  const body = raw.subarray(start, raw.length - tail);
  const bytes = 32;
  const rs = new Uint8Array(2 * bytes);
  const [r, s] = [numberBytes(signature.r), numberBytes(signature.s)];
  rs.set(r, bytes - r.length);
  rs.set(s, 2 * bytes - s.length);
  return { digest: keccak256(signedBytes(transaction, body)), signature: rs, recoveryId: signature.yParity };
};

/** Returns the signed bytes: EIP-155 for a legacy transaction with a chain id, EIP-2718 for other types. */
const signedBytes = (transaction: SignedTransaction, body: Uint8Array): Uint8Array => {
  if (transaction.type !== 0) {
    return concatBytes([Uint8Array.of(transaction.type), encodeList([body])]);
  }
  if (transaction.chainId === undefined) {
    return encodeList([body]);
  }
  return encodeList([body, encodeNumber(transaction.chainId), encodeNumber(0), encodeNumber(0)]);
};
