import type { AccountChange, StateChanges } from "../../core/stateReader.ts";
import type { Address } from "../../ethereum/hex.ts";
import { EMPTY_CODE_HASH } from "../../ethereum/keccak.ts";
import type { AccountWrites } from "../writeSet.ts";
import { clearSlots, type MutableAccounts, type MutableWrites, writesOf } from "./mutableWrites.ts";

const NOTHING = new Uint8Array(0);

const addAccount = (writes: MutableWrites, { account, code, isCleared }: AccountChange): void => {
  writes.balance = account?.balance ?? 0n;
  writes.nonce = account?.nonce ?? 0n;
  if (code !== undefined) {
    writes.code = code;
    writes.codeHash = account?.codeHash ?? EMPTY_CODE_HASH;
  } else if (account === undefined || isCleared) {
    // The account was destroyed or created without a code.
    const codeHash = account?.codeHash ?? EMPTY_CODE_HASH;
    writes.code = codeHash === EMPTY_CODE_HASH ? NOTHING : "unknown";
    writes.codeHash = codeHash;
  }
};

/** Composes the writes of consecutive executions, oldest first. An account that was only read may be among them, with its value. */
export const composeChanges = (executions: readonly StateChanges[]): ReadonlyMap<Address, AccountWrites> => {
  const accounts: MutableAccounts = new Map();
  for (const changes of executions) {
    for (const [address, change] of changes) {
      const writes = writesOf(accounts, address);
      addAccount(writes, change);
      if (change.isCleared) {
        clearSlots(writes);
      }
      for (const [slot, value] of change.slots) {
        writes.slots.set(slot, value);
      }
    }
  }
  return accounts;
};
