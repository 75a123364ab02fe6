import type { AccountFields, StateManagerInterface } from "@ethereumjs/common";
import { OriginalStorageCache } from "@ethereumjs/statemanager";
import { Account, type Address as AddressBytes, KECCAK256_RLP } from "@ethereumjs/util";
import { type Address, formatData } from "../../ethereum/hex.ts";
import { stripZeros } from "../../ethereum/rlp.ts";
import type { ReferenceState } from "./referenceState.ts";

/** Any root but the empty one. The library only checks whether an account has storage (EIP-7610). */
const SOME_ROOT = new Uint8Array(32).fill(1);

const addressOf = (address: AddressBytes): Address => formatData(address.bytes);

/** Gives the library access to a ReferenceState. There are no state roots, because most of the state is not known. */
export class ReferenceStateManager implements StateManagerInterface {
  /** The state of the next transaction. */
  state: ReferenceState;
  readonly originalStorageCache = new OriginalStorageCache((address, key) => this.getStorage(address, key));

  constructor(state: ReferenceState) {
    this.state = state;
  }

  async getAccount(address: AddressBytes): Promise<Account | undefined> {
    const account = this.state.accountOf(addressOf(address));
    const root = account?.hasStorage ? SOME_ROOT : KECCAK256_RLP;
    return account && new Account(account.nonce, account.balance, root, account.codeHash);
  }

  async putAccount(address: AddressBytes, account?: Account): Promise<void> {
    if (account === undefined) {
      this.state.delete(addressOf(address));
    } else {
      this.state.setAccount(addressOf(address), account.nonce, account.balance);
    }
  }

  async deleteAccount(address: AddressBytes): Promise<void> {
    this.state.delete(addressOf(address));
  }

  async modifyAccountFields(address: AddressBytes, fields: AccountFields): Promise<void> {
    const at = addressOf(address);
    const { nonce = this.state.nonceOf(at), balance = this.state.balanceOf(at) } = fields;
    this.state.setAccount(at, nonce, balance);
  }

  async putCode(address: AddressBytes, code: Uint8Array): Promise<void> {
    this.state.setCode(addressOf(address), code);
  }

  async getCode(address: AddressBytes): Promise<Uint8Array> {
    return this.state.codeOf(addressOf(address));
  }

  async getCodeSize(address: AddressBytes): Promise<number> {
    return this.state.codeOf(addressOf(address)).length;
  }

  async getStorage(address: AddressBytes, key: Uint8Array): Promise<Uint8Array> {
    return this.state.storageOf(addressOf(address), formatData(key));
  }

  async putStorage(address: AddressBytes, key: Uint8Array, value: Uint8Array): Promise<void> {
    this.state.setStorage(addressOf(address), formatData(key), stripZeros(value));
  }

  async clearStorage(address: AddressBytes): Promise<void> {
    this.state.clear(addressOf(address));
  }

  async checkpoint(): Promise<void> {
    this.state.mark();
  }

  async commit(): Promise<void> {
    this.state.keep();
  }

  async revert(): Promise<void> {
    this.state.undo();
  }

  async getStateRoot(): Promise<Uint8Array> {
    return new Uint8Array(32);
  }

  async setStateRoot(): Promise<void> {
    throw new Error("the state has no roots");
  }

  async hasStateRoot(): Promise<boolean> {
    return false;
  }

  clearCaches(): void {
    this.originalStorageCache.clear();
  }

  shallowCopy(): StateManagerInterface {
    return new ReferenceStateManager(this.state);
  }
}
