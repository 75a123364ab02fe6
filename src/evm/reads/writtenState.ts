import type { AccountChange, StateChanges, StateReader } from "../../core/stateReader.ts";
import type { Address, Hash } from "../../ethereum/hex.ts";

const NOTHING = new Uint8Array(0);

type WrittenAccount = { -readonly [Field in keyof AccountChange]: AccountChange[Field] } & {
  readonly slots: Map<Hash, Uint8Array>;
};

/** The writes of consecutive executions, above a state that does not contain them. */
export class WrittenState {
  readonly #accounts = new Map<Address, WrittenAccount>();
  readonly #codes = new Map<Hash, Uint8Array>();

  /** All writes as one write set. */
  get changes(): StateChanges {
    return this.#accounts;
  }

  /** Adds the writes of the next execution. */
  add(changes: StateChanges): void {
    for (const [address, { account, code, isCleared, slots }] of changes) {
      const written = this.#accounts.get(address) ?? { account, isCleared, slots: new Map<Hash, Uint8Array>() };
      written.account = account;
      if (isCleared) {
        written.isCleared = true;
        written.slots.clear();
        delete written.code;
      }
      for (const [slot, value] of slots) {
        written.slots.set(slot, value);
      }
      // Earlier code stays valid, unless the account was destroyed or created again.
      if (code !== undefined) {
        written.code = code;
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

/** Merges write sets, oldest first, into one. */
export const mergeChanges = (layers: readonly StateChanges[]): StateChanges => {
  const written = new WrittenState();
  for (const layer of layers) {
    written.add(layer);
  }
  return written.changes;
};
