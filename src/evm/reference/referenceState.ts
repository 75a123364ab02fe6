import { KECCAK256_NULL } from "@ethereumjs/util";
import type { AccountState, StateChanges, StateReader } from "../../core/stateReader.ts";
import { type Address, formatData, type Hash, parseData } from "../../ethereum/hex.ts";
import { EMPTY_CODE_HASH, keccak256 } from "../../ethereum/keccak.ts";
import type { AccountValues, ExecutionState } from "../executionState.ts";

const NOTHING = new Uint8Array(0);

interface StoredAccount extends AccountValues {
  /** The account has slots that are not zero (EIP-7610). */
  readonly hasStorage: boolean;
}

const NEW: StoredAccount = { nonce: 0n, balance: 0n, codeHash: KECCAK256_NULL, hasStorage: false };

/** Whether the account is empty. Source: EIP-161. */
const isEmpty = ({ nonce, balance, codeHash }: AccountValues): boolean =>
  nonce === 0n && balance === 0n && formatData(codeHash) === EMPTY_CODE_HASH;

/** The state of the reference engine: a reader and maps of what was written. A checkpoint is a position in the list of undo steps. */
export class ReferenceState implements ExecutionState {
  readonly #reader: StateReader;
  readonly #accounts = new Map<Address, StoredAccount | undefined>();
  /** Written codes by their hash. */
  readonly #codes = new Map<Hash, Uint8Array>();
  /** Written slots of each account. A new map begins when all slots of the account become zero. */
  readonly #storage = new Map<Address, { readonly isCleared: boolean; readonly slots: Map<Hash, Uint8Array> }>();
  readonly #preset = new Map<string, Uint8Array>();
  readonly #touched = new Set<Address>();
  #undo: (() => void)[] = [];
  #checkpoints: number[] = [];

  constructor(reader: StateReader) {
    this.#reader = reader;
  }

  accountOf(address: Address): StoredAccount | undefined {
    if (this.#accounts.has(address)) {
      return this.#accounts.get(address);
    }
    const account = this.#reader.account(address);
    return account && { ...account, codeHash: parseData(account.codeHash), hasStorage: account.hasStorage ?? false };
  }

  nonceOf(address: Address): bigint {
    return this.accountOf(address)?.nonce ?? 0n;
  }

  balanceOf(address: Address): bigint {
    return this.accountOf(address)?.balance ?? 0n;
  }

  codeOf(address: Address): Uint8Array {
    const hash = formatData(this.accountOf(address)?.codeHash ?? KECCAK256_NULL);
    if (hash === EMPTY_CODE_HASH) {
      return NOTHING;
    }
    return this.#codes.get(hash) ?? this.#reader.code(hash, address);
  }

  storageOf(address: Address, slot: Hash): Uint8Array {
    const written = this.#storage.get(address);
    const value = written?.slots.get(slot);
    if (value !== undefined || written?.isCleared) {
      return value ?? NOTHING;
    }
    const preset = this.#preset.get(address + slot);
    if (preset !== undefined) {
      return preset;
    }
    return this.accountOf(address) === undefined ? NOTHING : this.#reader.storage(address, slot);
  }

  setAccount(address: Address, nonce: bigint, balance: bigint): void {
    this.#put(address, { ...(this.accountOf(address) ?? NEW), nonce, balance });
    this.#touched.add(address);
  }

  addBalance(address: Address, amount: bigint): void {
    const { nonce, balance } = this.accountOf(address) ?? NEW;
    this.setAccount(address, nonce, BigInt.asUintN(256, balance + amount));
  }

  setCode(address: Address, code: Uint8Array): void {
    const codeHash = code.length === 0 ? KECCAK256_NULL : keccak256(code);
    this.#codes.set(formatData(codeHash), code);
    this.#put(address, { ...(this.accountOf(address) ?? NEW), codeHash });
    this.#touched.add(address);
  }

  clear(address: Address): void {
    this.#write(this.#storage, address, { isCleared: true, slots: new Map() });
    const account = this.accountOf(address) ?? NEW;
    this.#put(address, { ...account, hasStorage: false });
  }

  setStorage(address: Address, slot: Hash, value: Uint8Array): void {
    const account = this.accountOf(address);
    const hasStorage = account?.hasStorage || value.length > 0;
    if (account === undefined || account.hasStorage !== hasStorage) {
      this.#put(address, { ...(account ?? NEW), hasStorage });
    }
    let written = this.#storage.get(address);
    if (written === undefined) {
      written = { isCleared: false, slots: new Map() };
      this.#storage.set(address, written);
    }
    this.#write(written.slots, slot, value);
  }

  presetStorage(address: Address, slot: Hash, value: Uint8Array): void {
    this.#preset.set(address + slot, value);
  }

  delete(address: Address): void {
    const account = this.accountOf(address);
    if (account === undefined) {
      return;
    }
    this.#put(address, undefined);
    this.#write(this.#storage, address, { isCleared: true, slots: new Map() });
  }

  endTransaction(removesEmpty: boolean): void {
    for (const address of removesEmpty ? this.#touched : []) {
      if (isEmpty(this.accountOf(address) ?? NEW)) {
        this.delete(address);
      }
    }
    this.#touched.clear();
  }

  changes(): StateChanges {
    const addresses = new Set([...this.#accounts.keys(), ...this.#storage.keys()]);
    return new Map(
      [...addresses].map((address) => {
        const account = this.accountOf(address);
        const { isCleared = false, slots = new Map<Hash, Uint8Array>() } = this.#storage.get(address) ?? {};
        const code = account && this.#codes.get(formatData(account.codeHash));
        const values = new Map(slots.entries().filter(([, value]) => !isCleared || value.length > 0));
        return [address, { account: account && plain(account), ...(code && { code }), isCleared, slots: values }];
      }),
    );
  }

  /** Opens a checkpoint. */
  mark(): void {
    this.#checkpoints.push(this.#undo.length);
  }

  /** Closes the last checkpoint and does not undo its writes. */
  keep(): void {
    this.#checkpoints.pop();
    if (this.#checkpoints.length === 0) {
      this.#undo = [];
    }
  }

  /** Undoes all writes since the last checkpoint, and closes it. */
  undo(): void {
    const mark = this.#checkpoints.pop() ?? 0;
    while (this.#undo.length > mark) {
      this.#undo.pop()?.();
    }
  }

  /** Undoes all writes since the first open checkpoint, and closes all checkpoints. */
  abandon(): void {
    while (this.#checkpoints.length > 0) {
      this.undo();
    }
    this.#touched.clear();
  }

  #put(address: Address, account: StoredAccount | undefined): void {
    this.#write(this.#accounts, address, account);
  }

  #write<K, V>(map: Map<K, V>, key: K, value: V): void {
    const old = map.get(key);
    const wasWritten = map.has(key);
    this.#undo.push(() => (wasWritten ? map.set(key, old as V) : map.delete(key)));
    map.set(key, value);
  }
}

const plain = ({ nonce, balance, codeHash, hasStorage }: StoredAccount): AccountState => ({
  nonce,
  balance,
  codeHash: formatData(codeHash),
  ...(hasStorage ? { hasStorage } : {}),
});
