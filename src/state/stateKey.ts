import type { Address, Hash } from "../ethereum/hex.ts";

/** The fields of an account that have one value each, and the values of its slots. */
export type StateField = "balance" | "nonce" | "code" | "slot";

/** Names one value of the state after a block. */
export interface StateKey {
  readonly field: StateField;
  readonly address: Address;
  /** Undefined unless `field` is `slot`. */
  readonly slot: Hash | undefined;
}

/** Returns the text that names a value among those of one block. */
export const keyName = ({ field, address, slot }: Omit<StateKey, "field"> & { readonly field: string }): string =>
  field + address + (slot ?? "");
