import secp256k1 from "secp256k1";
import { type Address, formatData, parseData } from "../../../src/ethereum/hex.ts";
import { keccak256 } from "../../../src/ethereum/keccak.ts";
import { concatBytes, encodeBytes, encodeList, encodeNumber } from "../../../src/ethereum/rlp.ts";
import type { PlainTransaction } from "./standInTransactions.ts";

const KEY_BYTES = 32;
const ADDRESS_AT = 12;
const GAS = 100_000;
const MAX_FEE = 2_000_000_000;

const keys = new Map<number, { readonly secret: Uint8Array; readonly address: Address }>();

const keyOf = (index: number) => {
  const known = keys.get(index);
  if (known !== undefined) {
    return known;
  }
  const secret = Uint8Array.fromHex((0xa110000 + index).toString(16).padStart(2 * KEY_BYTES, "0"));
  const publicKey = secp256k1.publicKeyCreate(secret, false).subarray(1);
  const key = { secret, address: formatData(keccak256(publicKey).subarray(ADDRESS_AT)) as Address };
  keys.set(index, key);
  return key;
};

/** Returns the address of a wallet with a known key. */
export const walletAddress = (index: number): Address => keyOf(index).address;

export interface WalletTransaction extends Omit<PlainTransaction, "sender" | "to"> {
  readonly to: Address;
  readonly chainId: bigint;
  readonly data: Uint8Array;
}

/** Returns the EIP-2718 bytes of a transaction of type 2 that a wallet signed. */
export const signWalletTransaction = (
  index: number,
  { chainId, nonce, to, value, data }: WalletTransaction,
): Uint8Array => {
  const fields = [
    ...[encodeNumber(chainId), encodeNumber(nonce), encodeNumber(1), encodeNumber(MAX_FEE), encodeNumber(GAS)],
    ...[encodeBytes(parseData(to)), encodeNumber(value), encodeBytes(data), encodeList([])],
  ];
  const digest = keccak256(concatBytes([Uint8Array.of(2), encodeList(fields)]));
  const { signature, recid } = secp256k1.ecdsaSign(digest, keyOf(index).secret);
  const part = (at: number) => encodeNumber(BigInt(formatData(signature.subarray(at, at + KEY_BYTES))));
  return concatBytes([Uint8Array.of(2), encodeList([...fields, encodeNumber(recid), part(0), part(KEY_BYTES)])]);
};
