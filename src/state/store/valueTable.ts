import { type Entry, EntryPages, FLAGS_WORD, FROM_WORD, HASH_WORD, NEXT_WORD } from "./entryPages.ts";
import { ADDRESS_WORDS, FIELD_WORD, KEY_WORDS, type KeyEncoder, type ValuePlace } from "./keyEncoder.ts";

const USED = 1;
/** A block's write set names the key. Without this flag, the value was fetched. */
export const WRITTEN = 2;
/** The entry has a value. */
export const KNOWN = 4;
const REFERENCED = 8;
/** A node returned the value for the block of the entry. */
export const FETCHED = 16;
/** The value follows by hashes from the header of the entry's block: from its state root, or from its block access list. */
export const PROVEN = 32;
/** The value was executed here, and what the block's header commits to was compared. */
export const CHECKED = 64;
/** The entry is stored in the data folder as it is. */
export const SAVED = 128;

/** Entries that one eviction looks at, so that it takes microseconds. */
const EVICTION_STEPS = 256;

/**
 * A hash table of values by key and block number. An entry holds from its block until the next entry of its key.
 * The table has a fixed number of buckets, so that it never rehashes.
 */
export class ValueTable {
  readonly #pages: EntryPages;
  readonly #buckets: Int32Array;
  readonly #mask: number;
  #hand: Entry = 0;

  constructor(maxEntries: number) {
    this.#pages = new EntryPages(maxEntries);
    const buckets = 2 ** Math.floor(Math.log2(Math.max(1, maxEntries)));
    this.#buckets = new Int32Array(buckets);
    this.#mask = buckets - 1;
  }

  /** Number of entries. */
  get size(): number {
    return this.#pages.size;
  }

  /** Whether the next entry needs an eviction. */
  get isFull(): boolean {
    return this.#pages.isFull;
  }

  get bytes(): number {
    return this.#buckets.byteLength + this.#pages.bytes;
  }

  /** The highest entry. A caller that visits all entries counts up to it. */
  get last(): Entry {
    return this.#pages.last;
  }

  /** Returns the newest entry of a key at or below a block number. */
  find(key: KeyEncoder, at: number): Entry {
    let entry = this.#buckets[key.hash & this.#mask] ?? 0;
    while (entry !== 0 && !this.#isOfKeyUntil(entry, key, at)) {
      entry = this.#pages.word(entry, NEXT_WORD);
    }
    return entry;
  }

  /** Whether an entry is the newest of its key at or below a block number. */
  isNewest(entry: Entry, at: number): boolean {
    const pages = this.#pages;
    let other = this.#buckets[pages.word(entry, HASH_WORD) & this.#mask] ?? 0;
    while (other !== 0 && other !== entry && !(pages.word(other, FROM_WORD) <= at && this.#isSameKey(other, entry))) {
      other = pages.word(other, NEXT_WORD);
    }
    return other === entry && pages.word(entry, FROM_WORD) <= at;
  }

  /** Whether a block above `since`, up to `at`, wrote the key. */
  isWrittenSince(key: KeyEncoder, since: number, at: number): boolean {
    const pages = this.#pages;
    let entry = this.find(key, at);
    while (entry !== 0 && pages.word(entry, FROM_WORD) > since) {
      if (this.has(entry, WRITTEN)) {
        return true;
      }
      // The entries of a key are linked, newest block first.
      entry = this.find(key, pages.word(entry, FROM_WORD) - 1);
    }
    return false;
  }

  /** Adds an entry without a value. Returns 0 if the table is full. The entries of a key are linked, newest block first. */
  add(key: KeyEncoder, from: number, flags: number): Entry {
    const pages = this.#pages;
    const entry = pages.allocate();
    if (entry === 0) {
      return 0;
    }
    pages.setKey(entry, key.words);
    pages.setWord(entry, HASH_WORD, key.hash);
    pages.setWord(entry, FROM_WORD, from);
    pages.setWord(entry, FLAGS_WORD, USED | flags);
    const bucket = key.hash & this.#mask;
    let previous: Entry = 0;
    let next = this.#buckets[bucket] ?? 0;
    while (next !== 0 && !this.#isOfKeyUntil(next, key, from)) {
      previous = next;
      next = pages.word(next, NEXT_WORD);
    }
    pages.setWord(entry, NEXT_WORD, next);
    this.#link(bucket, previous, entry);
    return entry;
  }

  remove(entry: Entry): void {
    const bucket = this.#pages.word(entry, HASH_WORD) & this.#mask;
    let previous: Entry = 0;
    let current = this.#buckets[bucket] ?? 0;
    while (current !== entry) {
      if (current === 0) {
        throw new RangeError(`entry ${entry} is in no bucket`);
      }
      previous = current;
      current = this.#pages.word(current, NEXT_WORD);
    }
    this.#link(bucket, previous, this.#pages.word(entry, NEXT_WORD));
    this.#pages.release(entry);
  }

  /** Removes the entries of the same key that are of earlier blocks. */
  removeOlder(entry: Entry): void {
    const pages = this.#pages;
    let previous = entry;
    let current = pages.word(entry, NEXT_WORD);
    while (current !== 0) {
      const next = pages.word(current, NEXT_WORD);
      if (this.#isSameKey(current, entry)) {
        pages.setWord(previous, NEXT_WORD, next);
        pages.release(current);
      } else {
        previous = current;
      }
      current = next;
    }
  }

  /** Removes one entry, if possible one that was not read since the last visit. Returns false if it found only pinned entries. */
  evict(isPinned: (entry: Entry) => boolean): boolean {
    let referenced: Entry = 0;
    for (let step = 0; step < EVICTION_STEPS; step++) {
      this.#hand = this.#hand >= this.last ? 1 : this.#hand + 1;
      const entry = this.#hand;
      if (!this.has(entry, USED) || isPinned(entry)) {
        continue;
      }
      if (!this.has(entry, REFERENCED)) {
        this.remove(entry);
        return true;
      }
      this.#setFlags(entry, this.#flags(entry) & ~REFERENCED);
      referenced = entry;
    }
    if (referenced !== 0) {
      this.remove(referenced);
    }
    return referenced !== 0;
  }

  clear(): void {
    // Writing zeros would make the memory of an unused table resident.
    if (this.size > 0) {
      this.#buckets.fill(0);
    }
    this.#pages.clear();
    this.#hand = 0;
  }

  /** Whether this is an entry of a block. An entry that was removed may be in use for another key and block. */
  isOfBlock(entry: Entry, from: number): boolean {
    return this.has(entry, USED) && this.from(entry) === from;
  }

  /** Whether the entry is in use and has all these flags. */
  has(entry: Entry, flags: number): boolean {
    const wanted = flags | USED;
    return (this.#flags(entry) & wanted) === wanted;
  }

  /** Returns the number of the block from which the entry holds. */
  from(entry: Entry): number {
    return this.#pages.word(entry, FROM_WORD);
  }

  /** Returns the code of the field. */
  field(entry: Entry): number {
    return this.#pages.word(entry, FIELD_WORD);
  }

  /** Returns a number that is equal for equal addresses. */
  addressHash(entry: Entry): number {
    return this.#pages.word(entry, 0) ^ this.#pages.word(entry, ADDRESS_WORDS - 1);
  }

  isSameAddress(entry: Entry, other: Entry): boolean {
    return this.#pages.areEqual(entry, other, ADDRESS_WORDS);
  }

  /** Records a read, which protects the entry from the next eviction. */
  touch(entry: Entry): void {
    this.#setFlags(entry, this.#flags(entry) | REFERENCED);
  }

  /** Returns the value, 64 digits of hex. */
  value(entry: Entry): string {
    return this.#pages.value(entry);
  }

  /** Sets the value, 64 digits of hex, and flags. */
  setValue(entry: Entry, value: string, flags = 0): void {
    this.#setKnown(entry, flags);
    this.#pages.setValue(entry, value);
  }

  /** Sets the value to that of a place, and flags. */
  setValueAt(entry: Entry, place: ValuePlace, flags = 0): void {
    this.#setKnown(entry, flags);
    this.#pages.setValueAt(entry, place);
  }

  #setKnown(entry: Entry, flags: number): void {
    this.#setFlags(entry, (this.#flags(entry) & ~SAVED) | KNOWN | flags);
  }

  /** Records that the entry is stored. The flag ends with the next value. */
  setSaved(entry: Entry): void {
    this.#setFlags(entry, this.#flags(entry) | SAVED);
  }

  /** Returns where the key and the value of a slot's entry are. */
  placeOfSlot(entry: Entry): ValuePlace {
    return this.#pages.placeOfSlot(entry);
  }

  /** Copies the key and the value to a place. */
  copyTo(entry: Entry, place: ValuePlace): void {
    this.#pages.copyTo(entry, place);
  }

  #flags(entry: Entry): number {
    return this.#pages.word(entry, FLAGS_WORD);
  }

  #setFlags(entry: Entry, flags: number): void {
    this.#pages.setWord(entry, FLAGS_WORD, flags);
  }

  #isOfKeyUntil(entry: Entry, key: KeyEncoder, at: number): boolean {
    const pages = this.#pages;
    return (
      pages.word(entry, HASH_WORD) === key.hash && pages.word(entry, FROM_WORD) <= at && pages.hasKey(entry, key.words)
    );
  }

  #isSameKey(entry: Entry, other: Entry): boolean {
    const pages = this.#pages;
    return pages.word(entry, HASH_WORD) === pages.word(other, HASH_WORD) && pages.areEqual(entry, other, KEY_WORDS);
  }

  #link(bucket: number, previous: Entry, entry: Entry): void {
    if (previous === 0) {
      this.#buckets[bucket] = entry;
    } else {
      this.#pages.setWord(previous, NEXT_WORD, entry);
    }
  }
}
