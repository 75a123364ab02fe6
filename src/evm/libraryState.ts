import type { AccountFields, StateManagerInterface } from "@ethereumjs/common";
import { Account, type Address as AddressBytes, KECCAK256_RLP } from "@ethereumjs/util";
import { type Address, formatData } from "../ethereum/hex.ts";
import { stripZeros } from "../ethereum/rlp.ts";
import type { StateOverlay } from "./stateOverlay.ts";

/** Any root but the empty one. The library only checks whether an account has storage (EIP-7610). */
const SOME_STORAGE_ROOT = new Uint8Array(32).fill(1);
const DONE: Promise<void> = Promise.resolve();

const addressOf = (address: AddressBytes): Address => formatData(address.bytes);

/** Gives the library's EVM access to an overlay. Reads do not wait. There are no state roots, because most of the state is not known. */
export class LibraryState implements StateManagerInterface {
  readonly #state: StateOverlay;

  readonly originalStorageCache = {
    get: (address: AddressBytes, key: Uint8Array): Promise<Uint8Array> =>
      Promise.resolve(this.#state.originalOf(addressOf(address), formatData(key))),
    clear: (): void => {
      // The overlay knows when a transaction ends.
    },
  };

  constructor(state: StateOverlay) {
    this.#state = state;
  }

  /** Returns a copy, because the library changes it before `putAccount`. */
  getAccount(address: AddressBytes): Promise<Account | undefined> {
    const account = this.#state.accountOf(addressOf(address));
    if (account === undefined) {
      return Promise.resolve(undefined);
    }
    const root = account.hasStorage ? SOME_STORAGE_ROOT : KECCAK256_RLP;
    return Promise.resolve(new Account(account.nonce, account.balance, root, account.codeHash));
  }

  putAccount(address: AddressBytes, account?: Account): Promise<void> {
    if (account === undefined) {
      this.#state.delete(addressOf(address));
    } else {
      this.#state.setAccount(addressOf(address), account.nonce, account.balance);
    }
    return DONE;
  }

  deleteAccount(address: AddressBytes): Promise<void> {
    this.#state.delete(addressOf(address));
    return DONE;
  }

  modifyAccountFields(address: AddressBytes, fields: AccountFields): Promise<void> {
    const at = addressOf(address);
    const { nonce = this.#state.nonceOf(at), balance = this.#state.balanceOf(at) } = fields;
    this.#state.setAccount(at, nonce, BigInt.asUintN(256, balance));
    return DONE;
  }

  putCode(address: AddressBytes, code: Uint8Array): Promise<void> {
    this.#state.setCode(addressOf(address), code);
    return DONE;
  }

  getCode(address: AddressBytes): Promise<Uint8Array> {
    return Promise.resolve(this.#state.codeOf(addressOf(address)));
  }

  getCodeSize(address: AddressBytes): Promise<number> {
    return Promise.resolve(this.#state.codeOf(addressOf(address)).length);
  }

  getStorage(address: AddressBytes, key: Uint8Array): Promise<Uint8Array> {
    return Promise.resolve(this.#state.storageOf(addressOf(address), formatData(key)));
  }

  putStorage(address: AddressBytes, key: Uint8Array, value: Uint8Array): Promise<void> {
    this.#state.setStorage(addressOf(address), formatData(key), stripZeros(value));
    return DONE;
  }

  clearStorage(address: AddressBytes): Promise<void> {
    this.#state.clear(addressOf(address));
    return DONE;
  }

  checkpoint(): Promise<void> {
    this.#state.mark();
    return DONE;
  }

  commit(): Promise<void> {
    this.#state.keep();
    return DONE;
  }

  revert(): Promise<void> {
    this.#state.undo();
    return DONE;
  }

  getStateRoot(): Promise<Uint8Array> {
    return Promise.resolve(new Uint8Array(32));
  }

  setStateRoot(): Promise<void> {
    return DONE;
  }

  hasStateRoot(): Promise<boolean> {
    return Promise.resolve(false);
  }

  clearCaches(): void {
    // The overlay has no caches.
  }

  shallowCopy(): StateManagerInterface {
    return new LibraryState(this.#state);
  }
}
