import { isDeepStrictEqual } from "node:util";
import { LRUCache } from "lru-cache";
import type { AccountState, StateKeys, StateValues } from "../../core/stateReader.ts";
import type { Address, Hash } from "../../ethereum/hex.ts";
import type { FoundAccount, TracedAccount } from "./stateCalls.ts";

/** A cached account, slot or block hash. The object distinguishes a cached `undefined` from a missing entry. */
type CachedValue = { readonly value: AccountState | Uint8Array | Hash | undefined };

/** The measured size of one entry in memory, without its code. Most of it is the key. */
export const VALUE_BYTES = 600;

/** Returns the cache key of an account at a block. */
export const accountKey = (block: Hash, address: Address): string => `${block}${address}`;
/** Returns the cache key of a slot at a block. */
export const slotKey = (block: Hash, address: Address, slot: Hash): string => `${block}${address}${slot}`;
/** Returns the cache key of the hash of an ancestor of a block. */
export const hashKey = (block: Hash, number: bigint): string => `${block}#${number}`;

/** Caches state values of sealed blocks by the block's hash, and codes by their own hash. */
export class StateValueCache {
  readonly #values: LRUCache<string, CachedValue>;
  readonly #codes: LRUCache<Hash, Uint8Array>;

  /** Values have `maxBytes`, and codes have the same amount again. */
  constructor(maxBytes: number) {
    this.#values = new LRUCache({ maxSize: maxBytes, sizeCalculation: () => VALUE_BYTES });
    this.#codes = new LRUCache({ maxSize: maxBytes, sizeCalculation: (code) => code.length + VALUE_BYTES });
  }

  has(key: string): boolean {
    return this.#values.has(key);
  }

  setAccount(block: Hash, address: Address, { account, code }: FoundAccount): void {
    if (account !== undefined && code.length > 0) {
      this.#codes.set(account.codeHash, code);
    }
    this.#values.set(accountKey(block, address), { value: account });
  }

  setSlot(block: Hash, address: Address, slot: Hash, value: Uint8Array): void {
    this.#values.set(slotKey(block, address, slot), { value });
  }

  setBlockHash(block: Hash, number: bigint, value: Hash): void {
    this.#values.set(hashKey(block, number), { value });
  }

  /** Reports whether a traced account differs from cached values. */
  contradicts(block: Hash, { address, account, slots }: TracedAccount): boolean {
    return (
      this.#differs(accountKey(block, address), account) ||
      slots.some(([slot, value]) => this.#differs(slotKey(block, address, slot), value))
    );
  }

  /** Returns the values of all keys and the cached codes of their accounts, or `undefined` if a value is missing. */
  collect(block: Hash, keys: StateKeys): StateValues | undefined {
    const accounts: [Address, AccountState | undefined][] = [];
    const codes = new Map<Hash, Uint8Array>();
    for (const address of keys.accounts) {
      const cached = this.#values.get(accountKey(block, address));
      if (cached === undefined) {
        return undefined;
      }
      const account = cached.value as AccountState | undefined;
      accounts.push([address, account]);
      if (account !== undefined) {
        this.#collectCode(account.codeHash, codes);
      }
    }
    const slots: [Address, Hash, Uint8Array][] = [];
    for (const [address, slot] of keys.slots) {
      const cached = this.#values.get(slotKey(block, address, slot));
      if (cached === undefined) {
        return undefined;
      }
      slots.push([address, slot, cached.value as Uint8Array]);
    }
    const blockHashes: [bigint, Hash][] = [];
    for (const number of keys.blockHashes) {
      const cached = this.#values.get(hashKey(block, number));
      if (cached === undefined) {
        return undefined;
      }
      blockHashes.push([number, cached.value as Hash]);
    }
    return { accounts, codes: [...codes], slots, blockHashes };
  }

  #collectCode(codeHash: Hash, codes: Map<Hash, Uint8Array>): void {
    const code = this.#codes.get(codeHash);
    if (code !== undefined) {
      codes.set(codeHash, code);
    }
  }

  #differs(key: string, value: CachedValue["value"]): boolean {
    const cached = this.#values.get(key);
    return cached !== undefined && !isDeepStrictEqual(cached.value, value);
  }
}
