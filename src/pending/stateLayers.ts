import type { AccountChange, StateChanges } from "../core/stateReader.ts";
import type { WrittenAccount } from "../core/view.ts";
import type { Address, Hash } from "../ethereum/hex.ts";

/** Merges an account's changes from write sets, newest first. Returns undefined if none has the account. */
export const findAccount = (layers: readonly StateChanges[], address: Address): WrittenAccount | undefined => {
  let newest: AccountChange | undefined;
  let code: Uint8Array | undefined;
  let isCleared = false;
  for (const layer of layers) {
    const change = layer.get(address);
    if (change === undefined) {
      continue;
    }
    newest ??= change;
    code ??= change.account?.codeHash === newest.account?.codeHash ? change.code : undefined;
    // An older one may have the code, or show that the account's slots in the base are cleared.
    if (change.isCleared) {
      isCleared = true;
      break;
    }
  }
  return newest && { account: newest.account, isCleared, ...(code && { code }) };
};

const NOTHING = new Uint8Array(0);

/** Returns a slot's value without leading zero bytes; undefined if none has it. */
export const findSlot = (layers: readonly StateChanges[], address: Address, slot: Hash): Uint8Array | undefined => {
  for (const layer of layers) {
    const change = layer.get(address);
    const value = change?.slots.get(slot);
    if (value) {
      return value;
    }
    if (change?.isCleared) {
      return NOTHING;
    }
  }
  return undefined;
};
