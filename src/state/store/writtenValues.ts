import type { Hash } from "../../ethereum/hex.ts";
import { EMPTY_CODE_HASH, keccak256Hex } from "../../ethereum/keccak.ts";
import type { WriteSet } from "../writeSet.ts";
import type { TableKey } from "./keyEncoder.ts";
import { PackReader, VALUE_DIGITS, WRITTEN_PARTS } from "./packedWrites.ts";

/** The value zero, and in the table the hash of an empty code. */
export const ZERO_VALUE = "0".repeat(VALUE_DIGITS);

/** Returns the value under which a code is known. A known hash is not computed again. */
export const codeDigits = (code: Uint8Array, hash?: Hash): string =>
  code.length === 0 ? ZERO_VALUE : (hash ?? keccak256Hex(code)).slice(2);

/** A key that a block wrote, with its value in 64 digits of hex. Without a value, only the write is known. */
export interface WrittenValue {
  readonly key: TableKey;
  readonly value: string | undefined;
}

/** Stores a code, and returns its hash in 64 digits of hex. A known hash is not computed again. */
type StoreCode = (code: Uint8Array, hash: Hash | undefined) => string;

/** Returns the hash of a code. A hash can be known without its code. */
const readCode = (from: PackReader, hasHash: boolean, storeCode: StoreCode): string | undefined => {
  const code = from.bytes();
  const hash: Hash | undefined = hasHash ? from.hash() : undefined;
  if (code !== undefined) {
    return storeCode(code, hash);
  }
  return hash === EMPTY_CODE_HASH ? ZERO_VALUE : hash?.slice(2);
};

/** Lists what one account wrote. */
const accountValues = function* (from: PackReader, storeCode: StoreCode): Generator<WrittenValue> {
  const address = from.address();
  const parts = from.number();
  const has = (part: keyof typeof WRITTEN_PARTS): boolean => (parts & WRITTEN_PARTS[part]) !== 0;
  const slot = undefined;
  if (has("othersCleared") || has("othersUnknown")) {
    yield { key: { address, field: "storage", slot }, value: has("othersCleared") ? ZERO_VALUE : undefined };
  }
  if (has("balance")) {
    yield { key: { address, field: "balance", slot }, value: from.value() };
  }
  if (has("nonce")) {
    yield { key: { address, field: "nonce", slot }, value: from.value() };
  }
  if (has("code")) {
    yield { key: { address, field: "code", slot }, value: readCode(from, has("codeHash"), storeCode) };
  }
  for (let left = from.number(); left > 0; left--) {
    const written = from.hash();
    yield { key: { address, field: "slot", slot: written }, value: from.value() };
  }
};

/** Lists what a block wrote. Throws if the bytes end early. */
export const writtenValues = function* (
  { packed }: Pick<WriteSet, "packed">,
  storeCode: StoreCode,
): Generator<WrittenValue> {
  const from = new PackReader(packed);
  for (let left = from.number(); left > 0; left--) {
    yield* accountValues(from, storeCode);
  }
};
