import { KECCAK256_NULL } from "@ethereumjs/util";
import type { AccountChange, StateChanges, StateReader } from "../core/stateReader.ts";
import { type Address, formatData, type Hash, parseData } from "../ethereum/hex.ts";
import { keccak256 } from "../ethereum/keccak.ts";

const NOTHING = new Uint8Array(0);
export const EMPTY_CODE_HASH: Hash = formatData(KECCAK256_NULL);

export interface OverlayAccount {
  nonce: bigint;
  balance: bigint;
  codeHash: Uint8Array;
  hasStorage: boolean;
}

interface Entry extends OverlayAccount {
  readonly address: Address;
  exists: boolean;
  /** Undefined until it is asked for. */
  code: Uint8Array | undefined;
  /** Values as they are now, read or written. */
  slots: Map<Hash, Uint8Array>;
  /** The reader's slots no longer count. */
  isCleared: boolean;
  /** Values before this transaction, of the slots that it wrote (EIP-2200). */
  originals: Map<Hash, Uint8Array>;
  originalsOf: number;
  isWritten: boolean;
  isCodeWritten: boolean;
  readonly writtenSlots: Set<Hash>;
}

/** The state of a run: what was read and written, over a reader, with an undo list. A checkpoint is a position in that list. */
export class StateOverlay {
  readonly #reader: StateReader;
  readonly #entries = new Map<Address, Entry>();
  #undo: (() => void)[] = [];
  #checkpoints: number[] = [];
  #transaction = 0;
  #touched = new Set<Entry>();
  readonly #preset = new Map<Address, Map<Hash, Uint8Array>>();

  constructor(reader: StateReader) {
    this.#reader = reader;
  }

  #entry(address: Address): Entry {
    const known = this.#entries.get(address);
    if (known !== undefined) return known;
    const account = this.#reader.account(address);
    const entry: Entry = {
      address,
      exists: account !== undefined,
      nonce: account?.nonce ?? 0n,
      balance: account?.balance ?? 0n,
      codeHash:
        account === undefined || account.codeHash === EMPTY_CODE_HASH ? KECCAK256_NULL : parseData(account.codeHash),
      code: undefined,
      slots: this.#preset.get(address) ?? new Map(),
      isCleared: false,
      hasStorage: account?.hasStorage ?? false,
      originals: new Map(),
      originalsOf: 0,
      isWritten: false,
      isCodeWritten: false,
      writtenSlots: new Set(),
    };
    this.#entries.set(address, entry);
    return entry;
  }

  /** EIP-161: what was touched and is empty at the end of a transaction is no account. */
  #touch(entry: Entry): void {
    entry.isWritten = true;
    if (this.#touched.has(entry)) return;
    this.#touched.add(entry);
    this.#undo.push(() => this.#touched.delete(entry));
  }

  /** Undefined where there is none. Valid until the next write. */
  accountOf(address: Address): Readonly<OverlayAccount> | undefined {
    const entry = this.#entry(address);
    return entry.exists ? entry : undefined;
  }

  nonceOf(address: Address): bigint {
    return this.#entry(address).nonce;
  }

  balanceOf(address: Address): bigint {
    return this.#entry(address).balance;
  }

  exists(address: Address): boolean {
    return this.#entry(address).exists;
  }

  codeHashOf(address: Address): Uint8Array {
    return this.#entry(address).codeHash;
  }

  codeOf(address: Address): Uint8Array {
    const entry = this.#entry(address);
    entry.code ??= entry.codeHash === KECCAK256_NULL ? NOTHING : this.#reader.code(formatData(entry.codeHash), address);
    return entry.code;
  }

  storageOf(address: Address, slot: Hash): Uint8Array {
    const entry = this.#entry(address);
    const known = entry.slots.get(slot);
    if (known !== undefined) return known;
    const value = entry.isCleared || !entry.exists ? NOTHING : this.#reader.storage(address, slot);
    entry.slots.set(slot, value);
    return value;
  }

  /** The slot's value before this transaction (EIP-2200). */
  originalOf(address: Address, slot: Hash): Uint8Array {
    const entry = this.#entry(address);
    const written = entry.originalsOf === this.#transaction ? entry.originals.get(slot) : undefined;
    return written ?? this.storageOf(address, slot);
  }

  setAccount(address: Address, nonce: bigint, balance: bigint): void {
    const entry = this.#entry(address);
    const { exists, nonce: oldNonce, balance: oldBalance } = entry;
    this.#undo.push(() => {
      entry.exists = exists;
      entry.nonce = oldNonce;
      entry.balance = oldBalance;
    });
    entry.exists = true;
    entry.nonce = nonce;
    entry.balance = balance;
    this.#touch(entry);
  }

  setNonce(address: Address, nonce: bigint): void {
    this.setAccount(address, nonce, this.balanceOf(address));
  }

  /** Wraps at 2^256, as geth's does. */
  addBalance(address: Address, amount: bigint): void {
    const { nonce, balance } = this.#entry(address);
    this.setAccount(address, nonce, BigInt.asUintN(256, balance + amount));
  }

  setCode(address: Address, code: Uint8Array): void {
    const entry = this.#entry(address);
    const { exists, code: oldCode, codeHash } = entry;
    this.#undo.push(() => {
      entry.exists = exists;
      entry.code = oldCode;
      entry.codeHash = codeHash;
    });
    entry.exists = true;
    entry.code = code;
    entry.codeHash = code.length === 0 ? KECCAK256_NULL : keccak256(code);
    entry.isCodeWritten = true;
    this.#touch(entry);
  }

  setStorage(address: Address, slot: Hash, value: Uint8Array): void {
    const old = this.storageOf(address, slot);
    const entry = this.#entry(address);
    if (entry.originalsOf !== this.#transaction) {
      entry.originalsOf = this.#transaction;
      entry.originals = new Map();
    }
    // The original value stays known when the write is undone: it is the same then.
    if (!entry.originals.has(slot)) entry.originals.set(slot, old);
    const { slots, hasStorage, exists } = entry;
    this.#undo.push(() => {
      slots.set(slot, old);
      entry.hasStorage = hasStorage;
      entry.exists = exists;
    });
    entry.exists = true;
    slots.set(slot, value);
    if (value.length > 0) entry.hasStorage = true;
    entry.isWritten = true;
    entry.writtenSlots.add(slot);
  }

  /** A slot's value between transactions, written without asking whether the account is there. */
  presetStorage(address: Address, slot: Hash, value: Uint8Array): void {
    const entry = this.#entries.get(address);
    let slots = entry?.slots ?? this.#preset.get(address);
    if (slots === undefined) {
      slots = new Map();
      this.#preset.set(address, slots);
    }
    slots.set(slot, value);
  }

  #clear(entry: Entry): void {
    const { slots, isCleared, hasStorage } = entry;
    this.#undo.push(() => {
      entry.slots = slots;
      entry.isCleared = isCleared;
      entry.hasStorage = hasStorage;
    });
    entry.slots = new Map();
    entry.isCleared = true;
    entry.hasStorage = false;
    entry.isWritten = true;
  }

  /** Replaces the whole storage. */
  clear(address: Address): void {
    this.#clear(this.#entry(address));
  }

  delete(address: Address): void {
    const entry = this.#entry(address);
    const { exists, nonce, balance, codeHash, code } = entry;
    this.#undo.push(() => Object.assign(entry, { exists, nonce, balance, codeHash, code }));
    Object.assign(entry, { exists: false, nonce: 0n, balance: 0n, codeHash: KECCAK256_NULL, code: NOTHING });
    this.#clear(entry);
    this.#touch(entry);
  }

  mark(): void {
    this.#checkpoints.push(this.#undo.length);
  }

  keep(): void {
    this.#checkpoints.pop();
    if (this.#checkpoints.length === 0) this.#undo = [];
  }

  undo(): void {
    const mark = this.#checkpoints.pop() ?? 0;
    while (this.#undo.length > mark) this.#undo.pop()?.();
  }

  /** Undoes everything back to the first open checkpoint, and closes all of them. */
  abandon(): void {
    while (this.#checkpoints.length > 0) this.undo();
  }

  /** The end of a transaction: empty accounts that it touched are removed where EIP-161 holds, original values begin anew. */
  endTransaction(removesEmpty: boolean): void {
    if (removesEmpty) {
      for (const entry of [...this.#touched]) {
        const isEmpty = entry.nonce === 0n && entry.balance === 0n && entry.codeHash === KECCAK256_NULL;
        if (isEmpty && (entry.exists || entry.hasStorage)) this.delete(entry.address);
      }
    }
    this.#touched = new Set();
    this.#transaction++;
    if (this.#checkpoints.length === 0) this.#undo = [];
  }

  /** Everything written so far; what was written and undone is in it with the value that it had. */
  changes(): StateChanges {
    const changes = new Map<Address, AccountChange>();
    for (const entry of this.#entries.values()) {
      if (!entry.isWritten) continue;
      const { nonce, balance, exists, isCleared, hasStorage } = entry;
      const codeHash = formatData(entry.codeHash);
      const slots: (readonly [Hash, Uint8Array])[] = [];
      for (const slot of entry.writtenSlots) {
        const value = entry.slots.get(slot);
        if (value !== undefined && !(isCleared && value.length === 0)) slots.push([slot, value]);
      }
      changes.set(entry.address, {
        account: exists ? { nonce, balance, codeHash, ...(hasStorage ? { hasStorage } : {}) } : undefined,
        ...(entry.isCodeWritten && entry.code !== undefined ? { code: entry.code } : {}),
        isCleared,
        slots,
      });
    }
    return changes;
  }
}

/** Storage values are kept without leading zeros, as the library's own handlers write them. */
export const stripZeros = (value: Uint8Array): Uint8Array => {
  let start = 0;
  while (start < value.length && value[start] === 0) start++;
  return start === 0 ? value : value.subarray(start);
};
