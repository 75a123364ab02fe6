import { createMPT } from "@ethereumjs/mpt";
import { RLP } from "@ethereumjs/rlp";
import type { StateChanges, StateReader } from "../../../src/core/stateReader.ts";
import { type Address, type Hash, parseData } from "../../../src/ethereum/hex.ts";
import { EMPTY_CODE_HASH, keccak256 } from "../../../src/ethereum/keccak.ts";
import { numberBytes } from "../../../src/ethereum/rlp.ts";

export interface PlainAccount {
  readonly nonce: bigint;
  readonly balance: bigint;
  readonly code: Uint8Array;
  readonly codeHash: Hash;
  readonly storage: ReadonlyMap<Hash, Uint8Array>;
}
/** A whole state in memory. */
export type PlainState = ReadonlyMap<Address, PlainAccount>;

const NOTHING = new Uint8Array(0);

export const readerOf = (state: PlainState, blockHash: (number: bigint) => Hash): StateReader => ({
  account: (address) => {
    const account = state.get(address);
    if (account === undefined) {
      return undefined;
    }
    const { nonce, balance, codeHash, storage } = account;
    return { nonce, balance, codeHash, hasStorage: storage.size > 0 };
  },
  code: (_hash, address) => state.get(address)?.code ?? NOTHING,
  storage: (address, slot) => state.get(address)?.storage.get(slot) ?? NOTHING,
  blockHash,
});

export const withChanges = (state: PlainState, changes: StateChanges): PlainState => {
  const after = new Map(state);
  for (const [address, change] of changes) {
    if (change.account === undefined) {
      after.delete(address);
      continue;
    }
    const before = state.get(address);
    const storage = new Map(change.isCleared ? [] : (before?.storage ?? []));
    for (const [slot, value] of change.slots) {
      if (value.length === 0) {
        storage.delete(slot);
      } else {
        storage.set(slot, value);
      }
    }
    const { nonce, balance, codeHash } = change.account;
    const code = codeHash === EMPTY_CODE_HASH ? NOTHING : (change.code ?? before?.code ?? NOTHING);
    after.set(address, { nonce, balance, codeHash, code, storage });
  }
  return after;
};

/** Computes the state root with the library's trie. */
export const stateRoot = async (state: PlainState): Promise<Uint8Array> => {
  const trie = await createMPT({ useRootPersistence: false, useNodePruning: false });
  for (const [address, account] of state) {
    const root = await storageRoot(account.storage);
    const fields = [numberBytes(account.nonce), numberBytes(account.balance), root, parseData(account.codeHash)];
    await trie.put(keccak256(parseData(address)), RLP.encode(fields));
  }
  return trie.root();
};

const storageRoot = async (storage: ReadonlyMap<Hash, Uint8Array>): Promise<Uint8Array> => {
  const trie = await createMPT({ useRootPersistence: false });
  for (const [slot, value] of storage) {
    await trie.put(keccak256(parseData(slot)), RLP.encode(value));
  }
  return trie.root();
};
