import type { Address } from "../../ethereum/hex.ts";
import { keccak256Hex } from "../../ethereum/keccak.ts";
import { numberBytes } from "../../ethereum/rlp.ts";
import type { AccountAccess, IndexedChange } from "../../verification/blockAccessList.ts";
import { type BlockWrites, type MutableWrites, writesOf } from "../writeSet.ts";

/** Returns the value after the block: the one with the highest index. Undefined if there is no change. */
const lastValue = <Value>(changes: readonly IndexedChange<Value>[]): Value | undefined => {
  let last: IndexedChange<Value> | undefined;
  for (const change of changes) {
    last = last === undefined || change.index >= last.index ? change : last;
  }
  return last?.value;
};

const addAccount = (writes: MutableWrites, account: AccountAccess): void => {
  const balance = lastValue(account.balanceChanges);
  const nonce = lastValue(account.nonceChanges);
  const code = lastValue(account.codeChanges);
  if (balance !== undefined) {
    writes.balance = balance;
  }
  if (nonce !== undefined) {
    writes.nonce = nonce;
  }
  if (code !== undefined) {
    writes.code = code;
    writes.codeHash = keccak256Hex(code);
  }
  for (const { slot, changes } of account.storageChanges) {
    const value = lastValue(changes);
    if (value !== undefined) {
      writes.slots.set(slot, numberBytes(value));
    }
  }
};

/** Returns the writes of a block. The list has all of them, also those outside transactions. */
export const writesOfAccessList = (list: readonly AccountAccess[]): BlockWrites => {
  const accounts = new Map<Address, MutableWrites>();
  for (const account of list) {
    if ([account.storageChanges, account.balanceChanges, account.nonceChanges, account.codeChanges].some(hasItems)) {
      addAccount(writesOf(accounts, account.address), account);
    }
  }
  return accounts;
};

const hasItems = ({ length }: readonly unknown[]): boolean => length > 0;
