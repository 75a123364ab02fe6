import type { Address } from "../ethereum/hex.ts";
import type { TableKey } from "./keyEncoder.ts";
import type { AccountWrites, WriteSet, Written } from "./writeSet.ts";

const VALUE_DIGITS = 64;

/** The value zero, and in the table the hash of an empty code. */
export const ZERO_VALUE = "0".repeat(VALUE_DIGITS);

/** A key that a block wrote, with its value in 64 digits of hex. Without a value, only the write is known. */
export interface WrittenValue {
  readonly key: TableKey;
  readonly value: string | undefined;
}

const formatNumber = (value: Written<bigint>): string | undefined =>
  value === "unknown" ? undefined : value.toString(16).padStart(VALUE_DIGITS, "0");

const formatBytes = (value: Written<Uint8Array>): string | undefined =>
  value === "unknown"
    ? undefined
    : Buffer.from(value.buffer, value.byteOffset, value.length).toString("hex").padStart(VALUE_DIGITS, "0");

/** Lists what one account wrote. `storeCode` returns the hash of a code. */
const accountValues = function* (
  address: Address,
  { balance, nonce, code, otherSlots, slots }: AccountWrites,
  storeCode: (code: Uint8Array) => string,
): Generator<WrittenValue> {
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
  if (code !== undefined) {
    yield { key: { address, field: "code", slot }, value: code === "unknown" ? undefined : storeCode(code) };
  }
  for (const [written, value] of slots) {
    yield { key: { address, field: "slot", slot: written }, value: formatBytes(value) };
  }
};

/** Lists what a block wrote. `storeCode` returns the hash of a code in 64 digits of hex. */
export const writtenValues = function* (
  { accounts }: WriteSet,
  storeCode: (code: Uint8Array) => string,
): Generator<WrittenValue> {
  for (const [address, writes] of accounts) {
    yield* accountValues(address, writes, storeCode);
  }
};
