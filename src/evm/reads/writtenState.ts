import type { AccountState, StateChanges, StateReader } from "../../core/stateReader.ts";
import type { Address, Hash } from "../../ethereum/hex.ts";

const NOTHING = new Uint8Array(0);

interface WrittenAccount {
  account: AccountState | undefined;
  /** Slots that were not written are zero. */
  isCleared: boolean;
  readonly slots: Map<Hash, Uint8Array>;
}

/** The writes of transactions, above a state that does not contain them. */
export class WrittenState {
  readonly #accounts = new Map<Address, WrittenAccount>();
  readonly #codes = new Map<Hash, Uint8Array>();

  /** Adds the writes of the next transaction. */
  add(changes: StateChanges): void {
    for (const [address, { account, code, isCleared, slots }] of changes) {
      const written = this.#accounts.get(address) ?? { account, isCleared: false, slots: new Map<Hash, Uint8Array>() };
      written.account = account;
      if (isCleared) {
        written.isCleared = true;
        written.slots.clear();
      }
      for (const [slot, value] of slots) {
        written.slots.set(slot, value);
      }
      this.#accounts.set(address, written);
      if (account !== undefined && code !== undefined) {
        this.#codes.set(account.codeHash, code);
      }
    }
  }

  /** Reads these writes, and from `base` what was not written. */
  over(base: StateReader): StateReader {
    return {
      account: (address) => {
        const written = this.#accounts.get(address);
        return written === undefined ? base.account(address) : written.account;
      },
      code: (hash, address) => this.#codes.get(hash) ?? base.code(hash, address),
      storage: (address, slot) => {
        const written = this.#accounts.get(address);
        return written?.slots.get(slot) ?? (written?.isCleared ? NOTHING : base.storage(address, slot));
      },
      blockHash: (number) => base.blockHash(number),
    };
  }
}
