import type { StateKeys } from "../../core/stateReader.ts";
import type { Address, Hash } from "../../ethereum/hex.ts";

/** A set of state keys, each once. */
export class StateKeySet {
  readonly #accounts = new Set<Address>();
  readonly #slots = new Map<string, readonly [Address, Hash]>();
  readonly #blockHashes = new Set<bigint>();

  get size(): number {
    return this.#accounts.size + this.#slots.size + this.#blockHashes.size;
  }

  hasSlot(address: Address, slot: Hash): boolean {
    return this.#slots.has(address + slot);
  }

  addAccount(address: Address): void {
    this.#accounts.add(address);
  }

  addSlot(address: Address, slot: Hash): void {
    this.#slots.set(address + slot, [address, slot]);
  }

  addBlockHash(number: bigint): void {
    this.#blockHashes.add(number);
  }

  add({ accounts, slots, blockHashes }: StateKeys): void {
    for (const address of accounts) {
      this.addAccount(address);
    }
    for (const [address, slot] of slots) {
      this.addSlot(address, slot);
    }
    for (const number of blockHashes) {
      this.addBlockHash(number);
    }
  }

  keys(): StateKeys {
    return {
      accounts: [...this.#accounts],
      slots: [...this.#slots.values()],
      blockHashes: [...this.#blockHashes],
    };
  }
}
