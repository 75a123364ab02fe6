import type { Address, Hash } from "../../ethereum/hex.ts";
import type { AccountWrites, Written } from "../writeSet.ts";

type Mutable<Type> = { -readonly [Field in keyof Type]: Type[Field] };

/** The writes of one account while they are collected. A later write replaces an earlier one. */
export type MutableWrites = Mutable<Omit<AccountWrites, "slots">> & {
  readonly slots: Map<Hash, Written<Uint8Array>>;
};

export type MutableAccounts = Map<Address, MutableWrites>;

/** Returns the writes of an account, which are empty at first. */
export const writesOf = (accounts: MutableAccounts, address: Address): MutableWrites => {
  let writes = accounts.get(address);
  if (writes === undefined) {
    writes = { slots: new Map() };
    accounts.set(address, writes);
  }
  return writes;
};

/** Any slot may have been written. */
export const forgetSlots = (writes: MutableWrites): void => {
  writes.otherSlots = "unknown";
  writes.slots.clear();
};

export const forgetCode = (writes: MutableWrites): void => {
  writes.code = "unknown";
  delete writes.codeHash;
};

/** Anything of the account may have been written. */
export const forgetAccount = (writes: MutableWrites): void => {
  writes.balance = "unknown";
  writes.nonce = "unknown";
  forgetCode(writes);
  forgetSlots(writes);
};
