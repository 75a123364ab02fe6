import type { Address, Hash } from "../ethereum/hex.ts";
import { type Fields, isFields } from "../json/fields.ts";
import { Malformed, read } from "./read.ts";

/** An account that a message's transactions use, with the slots that they read or write. */
export interface ListedAccount {
  readonly address: Address;
  readonly slots: readonly Hash[];
}

const MAX_ACCOUNTS = 20_000;

/**
 * Parses a flashblock access list: EIP-7928's account changes, in the metadata (Base, X Layer) or in `diff` (World Chain).
 * The list is a hint for prefetching. An unknown format returns an empty list.
 */
export const parseFlashblockAccessList = (metadata: Fields, diff: unknown): readonly ListedAccount[] => {
  const inDiff = isFields(diff) ? diff.access_list_data : undefined;
  const changes = [metadata.access_list, metadata.flashblock_access_list, inDiff].map(findChanges).find(Boolean);
  if (!changes || changes.length > MAX_ACCOUNTS) {
    return [];
  }
  try {
    return changes.map(parseAccount);
  } catch (error) {
    if (error instanceof Malformed) {
      return [];
    }
    throw error;
  }
};

const findChanges = (value: unknown): readonly unknown[] | undefined => {
  if (Array.isArray(value)) {
    return value;
  }
  if (!isFields(value)) {
    return undefined;
  }
  return findChanges(value.account_changes ?? value.accountChanges ?? value.access_list);
};

const parseAccount = (value: unknown): ListedAccount => {
  const account = read.fields(value);
  const changes = read.list(account.storageChanges ?? account.storage_changes ?? []).map(read.fields);
  const reads = read.list(account.storageReads ?? account.storage_reads ?? []);
  const slots = [...changes.map(({ key, slot }) => key ?? slot), ...reads].map(read.slot);
  return { address: read.address(account.address), slots };
};
