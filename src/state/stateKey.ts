import type { Address, Hash } from "../ethereum/hex.ts";
import { keccak256Hex } from "../ethereum/keccak.ts";

/** The fields of an account that have one value each, and the values of its slots. */
export type StateField = "balance" | "nonce" | "code" | "slot";

/** Names one value of the state after a block. */
export interface StateKey {
  readonly field: StateField;
  readonly address: Address;
  /** Undefined unless `field` is `slot`. */
  readonly slot: Hash | undefined;
}

export const accountKey = (address: Address, field: Exclude<StateField, "slot">): StateKey => ({
  ...{ field, address, slot: undefined },
});

/** Returns the keys of an account: balance, nonce and code. */
export const accountKeys = (address: Address): readonly StateKey[] =>
  (["balance", "nonce", "code"] as const).map((field) => accountKey(address, field));

export const slotKey = (address: Address, slot: Hash): StateKey => ({ field: "slot", address, slot });

/** Returns the text that names a value among those of one block. */
export const keyName = ({ field, address, slot }: Omit<StateKey, "field"> & { readonly field: string }): string =>
  field + address + (slot ?? "");

/** The value zero in 64 digits, as which an empty code is known too. */
export const ZERO_VALUE = "0".repeat(64);

/** Returns the value under which a code is known: its hash. */
export const codeDigits = (code: Uint8Array): string => (code.length === 0 ? ZERO_VALUE : keccak256Hex(code).slice(2));
