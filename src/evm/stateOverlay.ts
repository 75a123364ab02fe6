import { KECCAK256_NULL } from "@ethereumjs/util";
import type { StateChanges, StateReader } from "../core/stateReader.ts";
import { type Address, formatData, type Hash } from "../ethereum/hex.ts";
import { keccak256 } from "../ethereum/keccak.ts";
import type { ExecutionState } from "./executionState.ts";
import { changeOf, createEntry, isEmpty, type OverlayAccount, type OverlayEntry } from "./overlayEntry.ts";

const NOTHING = new Uint8Array(0);

/** The state of a run: the values that it read and wrote, above a reader. A checkpoint is a position in the list of undo steps. */
export class StateOverlay implements ExecutionState {
  readonly #reader: StateReader;
  readonly #entries = new Map<Address, OverlayEntry>();
  #undo: (() => void)[] = [];
  #checkpoints: number[] = [];
  #transaction = 0;
  #touched = new Set<OverlayEntry>();
  readonly #preset = new Map<Address, Map<Hash, Uint8Array>>();

  constructor(reader: StateReader) {
    this.#reader = reader;
  }

  #entry(address: Address): OverlayEntry {
    const cached = this.#entries.get(address);
    if (cached !== undefined) {
      return cached;
    }
    const entry = createEntry(address, this.#reader.account(address), this.#preset.get(address));
    this.#entries.set(address, entry);
    return entry;
  }

  /** A touched account that is empty at the end of the transaction is deleted (EIP-161). */
  #touch(entry: OverlayEntry): void {
    entry.isWritten = true;
    if (this.#touched.has(entry)) {
      return;
    }
    this.#touched.add(entry);
    this.#undo.push(() => this.#touched.delete(entry));
  }

  /** Returns `undefined` if the account does not exist. The result is valid until the next write. */
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
    const cached = entry.slots.get(slot);
    if (cached !== undefined) {
      return cached;
    }
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

  /** Wraps at 2^256, like geth. */
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
    // An undo does not remove the original value, because it is the same then.
    if (!entry.originals.has(slot)) {
      entry.originals.set(slot, old);
    }
    const { slots, hasStorage, exists } = entry;
    this.#undo.push(() => {
      slots.set(slot, old);
      entry.hasStorage = hasStorage;
      entry.exists = exists;
    });
    entry.exists = true;
    slots.set(slot, value);
    if (value.length > 0) {
      entry.hasStorage = true;
    }
    entry.isWritten = true;
    entry.writtenSlots.add(slot);
  }

  /** Writes a slot between transactions, without a read of the account. */
  presetStorage(address: Address, slot: Hash, value: Uint8Array): void {
    const entry = this.#entries.get(address);
    let slots = entry?.slots ?? this.#preset.get(address);
    if (slots === undefined) {
      slots = new Map();
      this.#preset.set(address, slots);
    }
    slots.set(slot, value);
  }

  #clear(entry: OverlayEntry): void {
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

  /** Sets all slots to zero. */
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
  }

  /** Ends a transaction: discards original values and, if `removesEmpty` (EIP-161), deletes the empty accounts that it touched. */
  endTransaction(removesEmpty: boolean): void {
    if (removesEmpty) {
      for (const entry of [...this.#touched]) {
        if (isEmpty(entry) && (entry.exists || entry.hasStorage)) {
          this.delete(entry.address);
        }
      }
    }
    this.#touched = new Set();
    this.#transaction++;
    if (this.#checkpoints.length === 0) {
      this.#undo = [];
    }
  }

  /** Returns all writes. A write that was undone is included with the value after the undo. */
  changes(): StateChanges {
    const written = [...this.#entries.values()].filter(({ isWritten }) => isWritten);
    return new Map(written.map((entry) => [entry.address, changeOf(entry)]));
  }
}
