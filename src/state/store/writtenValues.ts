import type { Address, Hash } from "../../ethereum/hex.ts";
import { EMPTY_CODE_HASH, keccak256Hex } from "../../ethereum/keccak.ts";
import type { AccountWrites, WriteSet, Written } from "../writeSet.ts";
import type { TableKey } from "./keyEncoder.ts";

const VALUE_DIGITS = 64;

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

const formatNumber = (value: Written<bigint>): string | undefined =>
  value === "unknown" ? undefined : value.toString(16).padStart(VALUE_DIGITS, "0");

const formatBytes = (value: Written<Uint8Array>): string | undefined =>
  value === "unknown"
    ? undefined
    : Buffer.from(value.buffer, value.byteOffset, value.length).toString("hex").padStart(VALUE_DIGITS, "0");

/** Returns the hash of a code. A hash can be known without its code. */
const formatCode = ({ code, codeHash }: AccountWrites, storeCode: StoreCode): string | undefined => {
  if (code !== undefined && code !== "unknown") {
    return storeCode(code, codeHash);
  }
  return codeHash === EMPTY_CODE_HASH ? ZERO_VALUE : codeHash?.slice(2);
};

/** Lists what one account wrote. */
const accountValues = function* (
  address: Address,
  writes: AccountWrites,
  storeCode: StoreCode,
): Generator<WrittenValue> {
  const { balance, nonce, otherSlots, slots } = writes;
  const slot = undefined;
  if (otherSlots !== undefined) {
    yield { key: { address, field: "storage", slot }, value: otherSlots === "cleared" ? ZERO_VALUE : undefined };
  }
  if (balance !== undefined) {
    yield { key: { address, field: "balance", slot }, value: formatNumber(balance) };
  }
  if (nonce !== undefined) {
    yield { key: { address, field: "nonce", slot }, value: formatNumber(nonce) };
  }
  if (writes.code !== undefined) {
    yield { key: { address, field: "code", slot }, value: formatCode(writes, storeCode) };
  }
  for (const [written, value] of slots) {
    yield { key: { address, field: "slot", slot: written }, value: formatBytes(value) };
  }
};

/** Lists what a block wrote. */
export const writtenValues = function* ({ accounts }: WriteSet, storeCode: StoreCode): Generator<WrittenValue> {
  for (const [address, writes] of accounts) {
    yield* accountValues(address, writes, storeCode);
  }
};
