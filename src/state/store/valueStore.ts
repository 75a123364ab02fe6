import { randomInt } from "node:crypto";
import { LRUCache } from "lru-cache";
import { type Grade, isAtLeast, weakestGrade } from "../../core/grade.ts";
import type { BlockId } from "../../core/heads.ts";
import type { Address } from "../../ethereum/hex.ts";
import { codeDigits, type StateField, type StateKey, ZERO_VALUE } from "../stateKey.ts";
import type { WriteSet } from "../writeSet.ts";
import { ClearedStorage } from "./clearedStorage.ts";
import { ENTRY_BYTES, type Entry } from "./entryPages.ts";
import { FollowedBlocks } from "./followedBlocks.ts";
import {
  FIELD_CODES,
  fieldOf,
  KeyEncoder,
  keyAt,
  type TableField,
  type TableKey,
  type ValuePlace,
} from "./keyEncoder.ts";
import { readRows, type ValueRow } from "./packedRows.ts";
import { UnfollowedValues } from "./unfollowedValues.ts";
import { UsedValues } from "./usedValues.ts";
import { CHECKED, FETCHED, KNOWN, PROVEN, SAVED, ValueTable, WRITTEN } from "./valueTable.ts";

/** A bucket of the table and a place in a block's list. */
const ENTRY_OVERHEAD_BYTES = 16;
const CODE_SHARE = 0.25;
/** The share of the table for write sets of blocks above the oldest readable one. */
const HISTORY_SHARE = 0.5;
const CODE_OVERHEAD_BYTES = 200;
/** Entries that one step of a list looks at. It takes about a microsecond. */
const ENTRIES_PER_STEP = 16;

/** A value that is not stored in the data folder as it is. */
export interface ChangedValue {
  readonly entry: Entry;
  /** `storage`: all slots of the account. */
  readonly field: TableField;
  /** False: a block wrote it, and its value is not known since. */
  readonly isKnown: boolean;
}

/** How a value became known. */
export interface ValueOrigin {
  /** The block from which the value is known. Undefined if it is no longer followed. */
  readonly from: BlockId | undefined;
  /** Whether the write set of that block has it. A node returned any other value for its block. */
  readonly isWritten: boolean;
}

/** Stands for the source node of values of an earlier process. They answer once they passed a check. */
export const RESTORED = "(restored)";

/** The flags of values of each grade. */
const FLAGS: Readonly<Record<Grade, number>> = { proven: PROVEN, checked: CHECKED, stated: 0 };

/**
 * The state values of one chain. Those of the newest canonical blocks come from write sets and from nodes. The readable blocks are a
 * range without gaps: the write sets of all blocks after the first of them are known. So a value holds from its block until the next write.
 * Changes are generators: a caller runs them in slices, one change at a time. Reads between two slices are right.
 */
export class ValueStore {
  readonly #table: ValueTable;
  readonly #cleared: ClearedStorage;
  readonly #codes: LRUCache<string, Uint8Array>;
  readonly #key = new KeyEncoder();
  readonly #blocks: FollowedBlocks;
  /** The nodes whose traces were applied without a proof, and RESTORED. */
  readonly sourceNodes = new Set<string>();
  /** Values at other blocks. */
  readonly unfollowed: UnfollowedValues;
  readonly used = new UsedValues();
  /** At random, because threads may still have what was read for an earlier store. */
  #beginnings = randomInt(2 ** 47);
  /** Whether all source nodes passed a check. While false, no block is readable. */
  isChecked = true;
  /** While values of an earlier process are being added, a check says nothing about those that follow. */
  isRestoring = false;

  /** `unfollowedBytes`: added for values at blocks that are not followed. Their codes have the same amount again. */
  constructor(maxBytes: number, unfollowedBytes = 0) {
    const codeBytes = Math.floor(maxBytes * CODE_SHARE);
    const valueBytes = maxBytes - codeBytes + unfollowedBytes;
    const maxEntries = Math.floor(valueBytes / (ENTRY_BYTES + ENTRY_OVERHEAD_BYTES));
    const table = new ValueTable(maxEntries);
    this.#table = table;
    this.#cleared = new ClearedStorage(table);
    this.#blocks = new FollowedBlocks(table, this.#cleared, maxEntries * HISTORY_SHARE);
    this.unfollowed = new UnfollowedValues(table, this.#isPinned);
    this.#codes = new LRUCache({
      maxSize: Math.max(1, codeBytes + unfollowedBytes),
      sizeCalculation: ({ length }) => length + CODE_OVERHEAD_BYTES,
    });
  }

  /** Changes when all values were forgotten. */
  get beginnings(): number {
    return this.#beginnings;
  }

  /** Number of entries. */
  get size(): number {
    return this.#table.size;
  }

  get bytes(): number {
    return this.#table.bytes + this.#codes.calculatedSize;
  }

  /** The newest readable block. */
  get head(): BlockId | undefined {
    return this.#blocks.head;
  }

  /** The newest blocks whose state can be read. */
  get maxReadable(): number {
    return this.#blocks.maxReadable;
  }

  set maxReadable(blocks: number) {
    this.#blocks.maxReadable = blocks;
  }

  /** Returns the newest readable block that `isCanonical` accepts. */
  findNewest(isCanonical: (block: BlockId) => boolean): BlockId | undefined {
    return this.#blocks.findNewest(isCanonical);
  }

  /** Whether values after this block may answer reads. */
  isReadable(block: BlockId): boolean {
    return this.isChecked && this.isApplied(block);
  }

  /** Whether the write sets of this block and of the blocks before it, as far as they are needed, are applied. */
  isApplied(block: BlockId): boolean {
    return this.#blocks.has(block);
  }

  /** Returns a value after a readable block: 64 digits of hex, of a code the hash. The hash of an empty code is zero here. */
  get(key: StateKey, block: BlockId): string | undefined {
    return this.isChecked ? this.getUnchecked(key, block) : undefined;
  }

  /** Returns a value that may wait for a check. It must answer no read. */
  getUnchecked(key: StateKey, block: BlockId): string | undefined {
    const entry = this.#findKnown(key, block);
    return entry === 0 ? undefined : this.#table.value(entry);
  }

  /** Returns the entry of the value that `get` returns; 0 if there is none. It can be that of another value later. */
  readableEntry(key: StateKey, block: BlockId): Entry {
    return this.isChecked ? this.#findKnown(key, block) : 0;
  }

  /** Returns the value of an entry: 64 digits of hex, of a code the hash. */
  valueAt(entry: Entry): string {
    return this.#table.value(entry);
  }

  /**
   * Returns the grade of an entry's value at a block at which it is readable. It is that of how the value became known, or of the
   * weakest write set since. A proven value stays proven while each block has a proven write set that does not name it.
   */
  gradeAt(entry: Entry, { number }: BlockId): Grade {
    const table = this.#table;
    const [at, from] = [Number(number), table.from(entry)];
    const own = table.has(entry, PROVEN) ? "proven" : table.has(entry, CHECKED) ? "checked" : "stated";
    return weakestGrade([own, this.#blocks.gradeSince(from, at)]);
  }

  /** Returns the grade of the known value of a key after a readable block. */
  gradeOf(key: StateKey, block: BlockId): Grade | undefined {
    const entry = this.#findKnown(key, block);
    return entry === 0 ? undefined : this.gradeAt(entry, block);
  }

  /** Returns the weakest grade of the write sets of the blocks above `since`, up to `at`. `stated` if one of the two is not readable. */
  gradeSince(since: BlockId, at: BlockId): Grade {
    const areReadable = this.isReadable(since) && this.isReadable(at) && since.number <= at.number;
    return areReadable ? this.#blocks.gradeSince(Number(since.number), Number(at.number)) : "stated";
  }

  #findKnown(key: StateKey, block: BlockId): Entry {
    const entry = this.isApplied(block) ? this.#find(key, Number(block.number)) : 0;
    if (!this.#isKnown(entry)) {
      return 0;
    }
    this.#table.touch(entry);
    return entry;
  }

  /** Returns how the value became known that `getUnchecked` returns. */
  originOf(key: StateKey, block: BlockId): ValueOrigin | undefined {
    const entry = this.isApplied(block) ? this.#find(key, Number(block.number)) : 0;
    return this.#isKnown(entry)
      ? { from: this.#blocks.idOf(this.#table.from(entry)), isWritten: !this.#table.has(entry, FETCHED) }
      : undefined;
  }

  /**
   * Whether a block above `since`, up to `at`, wrote the key, or all slots of its account. Both blocks must be readable.
   * A key with the field `storage` asks only for the second.
   */
  isWrittenSince(key: TableKey, since: BlockId, at: BlockId): boolean {
    const [from, to] = [Number(since.number), Number(at.number)];
    if (this.#table.isWrittenSince(this.#key.encode(key), from, to)) {
      return true;
    }
    if (key.field !== "slot" || this.#cleared.count === 0) {
      return false;
    }
    const marker = this.#key.encode({ address: key.address, field: "storage", slot: undefined });
    return this.#table.isWrittenSince(marker, from, to);
  }

  /** Returns the code of a hash that `get` returned. */
  code(hash: string): Uint8Array | undefined {
    return hash === ZERO_VALUE ? new Uint8Array(0) : this.#codes.get(hash);
  }

  #isKnown(entry: Entry): boolean {
    return this.#table.has(entry, KNOWN);
  }

  /**
   * Adds a value that a node returned for this block's hash: 64 digits of hex. `proven`: it follows from the state root. Returns false
   * if another value is known, which stays. An equal one is proven from then on if it was not. Without room, nothing is added.
   */
  add(key: StateKey, block: BlockId, value: string, grade: Grade = "stated"): boolean {
    if (!this.isApplied(block)) {
      return true;
    }
    const number = Number(block.number);
    const entry = this.#find(key, number);
    const isKnown = this.#isKnown(entry);
    if (isKnown && this.#table.value(entry) !== value) {
      return false;
    }
    if (isKnown && isAtLeast(this.gradeAt(entry, block), grade)) {
      return true;
    }
    // A proof is of this block: where the value is known from an earlier one, it gets an entry that ends with this block.
    const isOwn = this.#table.isOfBlock(entry, number) && this.#table.field(entry) === FIELD_CODES[key.field];
    const own = isOwn ? entry : this.#add(() => this.#key.encode(key), number, 0);
    if (own !== 0) {
      this.#table.setValue(own, value, FETCHED | FLAGS[grade]);
      this.#table.touch(own);
    }
    return true;
  }

  /** Copies a value, and its key, to a place. */
  copyTo({ entry }: Pick<ChangedValue, "entry">, place: ValuePlace): void {
    this.#table.copyTo(entry, place);
  }

  /** Returns the keys of up to so many known values, in equal distances from one that is chosen by chance. */
  sample(limit: number, random: () => number): readonly StateKey[] {
    const table = this.#table;
    const keys: StateKey[] = [];
    const step = Math.max(1, Math.floor(table.last / limit));
    const start = Math.floor(random() * table.last);
    for (let distance = 0; distance < table.last && keys.length < limit; distance += step) {
      const entry = 1 + ((start + distance) % table.last);
      const field = fieldOf(table.field(entry));
      if (field !== undefined && field !== "storage" && this.#isKnown(entry)) {
        const place = table.placeOfSlot(entry);
        keys.push(keyAt(field, field === "slot" ? place : { ...place, slot: undefined }));
      }
    }
    return keys;
  }

  /** Lists the accounts whose slots ended between two readable blocks. */
  *clearedSince(since: BlockId, { number }: BlockId): Generator<ChangedValue | undefined, void> {
    for (const entry of this.#blocks.markersSince(Number(since.number), Number(number))) {
      const isMarker = this.#table.field(entry) === FIELD_CODES.storage && this.#table.has(entry, WRITTEN);
      yield isMarker ? { entry, field: "storage", isKnown: false } : undefined;
    }
  }

  /**
   * Lists the values after a readable block that are not stored as they are, which they are from then on. `isWhole`: all known values.
   * Undefined after entries that are none of them. Changes may run between two steps while the block is readable.
   */
  *takeChanges({ number }: BlockId, isWhole: boolean): Generator<ChangedValue | undefined, void> {
    for (let entry = 1; entry <= this.#table.last; entry++) {
      const changed = this.#changedAt(entry, Number(number), isWhole);
      if (changed !== undefined) {
        this.#table.setSaved(entry);
        yield changed;
      } else if (entry % ENTRIES_PER_STEP === 0) {
        yield undefined;
      }
    }
  }

  #changedAt(entry: Entry, at: number, isWhole: boolean): ChangedValue | undefined {
    const table = this.#table;
    const field = fieldOf(table.field(entry));
    const mayChange = table.has(entry, 0) && table.from(entry) <= at && (isWhole || !table.has(entry, SAVED));
    const isKnown = this.#isKnown(entry);
    return mayChange &&
      field !== undefined &&
      field !== "storage" &&
      (isKnown || !isWhole) &&
      this.#isNewest(entry, field, at)
      ? { entry, field, isKnown }
      : undefined;
  }

  /** Whether an entry is the one that `#find` returns for its key. */
  #isNewest(entry: Entry, field: StateField, at: number): boolean {
    const isCleared = field === "slot" && this.#cleared.count > 0;
    return isCleared
      ? this.#findAt(field, this.#table.placeOfSlot(entry), at) === entry
      : this.#table.isNewest(entry, at);
  }

  /**
   * Adds a value that is stored for this block. One that is there stays. It is not proven. No value answers until RESTORED passed a
   * check. Returns false if it was not added.
   */
  restore(field: StateField, place: ValuePlace, block: BlockId): boolean {
    const number = Number(block.number);
    if (!this.isApplied(block) || this.#table.isFull || this.#findAt(field, place, number) !== 0) {
      return false;
    }
    const entry = this.#table.add(this.#key.encodeAt(field, place), number, 0);
    this.#blocks.addEntry(number, entry);
    this.#table.setValueAt(entry, place, FETCHED);
    this.#table.setSaved(entry);
    return true;
  }

  /** Forgets all values, and makes one block readable. */
  begin(block: BlockId): void {
    this.clear();
    this.#blocks.begin(block);
  }

  /** Forgets all values. No block is readable then. Codes stay, because their hashes name them. */
  clear(): void {
    this.#beginnings++;
    this.isChecked = true;
    this.sourceNodes.clear();
    this.#table.clear();
    this.#cleared.clear();
    this.#blocks.clear();
  }

  /**
   * Adds the next block, which is readable when the generator ends. Returns false if there is no room for its write set:
   * the caller must then begin at this block.
   */
  *apply(writeSet: WriteSet): Generator<void, boolean> {
    if (writeSet.node !== undefined) {
      this.sourceNodes.add(writeSet.node);
    }
    const { grade } = writeSet;
    const number = this.#blocks.add(writeSet.block.hash, grade);
    for (const row of readRows(writeSet.packed)) {
      if (row.kind === "bytes") {
        this.storeCode(row.content);
      } else if (row.kind !== "call" && !this.#write(row, number, grade)) {
        return false;
      }
      yield;
    }
    this.#blocks.extendTo(number);
    return true;
  }

  /** Adds what a block wrote. Returns false if there is no room for it. */
  #write({ kind, isEnded, place }: ValueRow, number: number, grade: Grade): boolean {
    const entry = this.#add(() => this.#key.encodeAt(kind, place), number, WRITTEN);
    if (entry === 0) {
      return false;
    }
    if (!isEnded) {
      this.#table.setValueAt(entry, place, FLAGS[grade]);
    }
    if (kind === "storage") {
      this.#cleared.add();
    }
    return true;
  }

  /** Removes what no readable block needs. It follows each block. */
  *prune(): Generator<void, void> {
    yield* this.#blocks.trim();
    yield* this.#cleared.sweep();
  }

  /** Removes all blocks above this number at once, then what was written and fetched at them. Yields the block of each value. */
  *undoTo(number: bigint): Generator<number, void> {
    const before = this.#blocks.newest;
    this.#blocks.endAt(Number(number));
    for (let removed = before; removed > this.#blocks.newest; removed--) {
      for (const entry of this.#blocks.remove(removed)) {
        if (this.#table.isOfBlock(entry, removed)) {
          this.#cleared.undo(entry);
          this.#table.remove(entry);
        }
        yield removed;
      }
    }
  }

  /** Returns the newest entry of a value at or below a block number: its own, or that of a block that cleared its slot. */
  #find(key: StateKey, at: number): Entry {
    const entry = this.#table.find(this.#key.encode(key), at);
    return key.field === "slot" && this.#cleared.count > 0 ? this.#newerMarker(entry, key.address, at) : entry;
  }

  /** Finds like `#find`. */
  #findAt(field: StateField, place: ValuePlace, at: number): Entry {
    const entry = this.#table.find(this.#key.encodeAt(field, place), at);
    return field === "slot" && this.#cleared.count > 0
      ? this.#newerMarker(entry, keyAt(field, place).address, at)
      : entry;
  }

  /** Returns the entry of the block that cleared the slots of an account, if it is newer than that of a slot. */
  #newerMarker(entry: Entry, address: Address, at: number): Entry {
    const table = this.#table;
    const marker = table.find(this.#key.encode({ address, field: "storage", slot: undefined }), at);
    return marker !== 0 && (entry === 0 || table.from(entry) < table.from(marker)) ? marker : entry;
  }

  /** Adds an entry that begins at a block. Returns 0 if there is no room. */
  #add(encode: () => KeyEncoder, number: number, flags: number): Entry {
    const add = () => this.#table.add(encode(), number, flags);
    let entry = add();
    // To make room, the table may end the readable blocks after this one. Then no write would end this value.
    if (entry === 0 && this.#makeRoom() && number >= this.#blocks.oldest) {
      entry = add();
    }
    if (entry !== 0) {
      this.#blocks.addEntry(number, entry);
    }
    return entry;
  }

  readonly #isPinned = (entry: Entry): boolean => this.#blocks.isPinned(entry);

  /** Evicts an entry. If all are pinned, fewer old blocks stay readable. */
  #makeRoom(): boolean {
    while (!this.#table.evict(this.#isPinned)) {
      if (!this.#blocks.dropOldest()) {
        return false;
      }
      for (const _ of this.prune()) {
        // Each step frees the older values of one key, or looks at a part of the table.
      }
    }
    return true;
  }

  /** Stores a code, and returns the value that names it. One that was computed in this process is not computed again. */
  storeCode(code: Uint8Array, hash = codeDigits(code)): string {
    if (code.length > 0) {
      // The bytes may share a larger buffer.
      this.#codes.set(hash, new Uint8Array(code));
    }
    return hash;
  }
}
