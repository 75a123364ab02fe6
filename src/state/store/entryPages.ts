import { ADDRESS_BYTES, KEY_WORDS, SLOT_BYTES, SLOT_START, VALUE_BYTES, type ValuePlace } from "./keyEncoder.ts";

/** An entry of the table. 0 is no entry. */
export type Entry = number;

export const HASH_WORD = KEY_WORDS;
export const FROM_WORD = HASH_WORD + 1;
export const NEXT_WORD = FROM_WORD + 1;
export const FLAGS_WORD = NEXT_WORD + 1;
const VALUE_WORD = FLAGS_WORD + 1;
const WORD_BYTES = 4;
const ENTRY_WORDS = VALUE_WORD + VALUE_BYTES / WORD_BYTES;

const PAGE_BITS = 12;
const PAGE_ENTRIES = 1 << PAGE_BITS;
const POSITION_MASK = PAGE_ENTRIES - 1;
const PAGE_BYTES = PAGE_ENTRIES * ENTRY_WORDS * WORD_BYTES;

/** Bytes of one entry. */
export const ENTRY_BYTES = ENTRY_WORDS * WORD_BYTES;

interface Page {
  readonly words: Int32Array;
  readonly bytes: Buffer;
}

/** Entries of a fixed size: a key, words, and a value of 32 bytes. They are outside the heap, in pages that are created as needed. */
export class EntryPages {
  readonly #maxEntries: number;
  #pages: Page[] = [];
  /** The first free entry. Free entries are linked by NEXT_WORD. */
  #free: Entry = 0;
  #last: Entry = 0;
  #size = 0;

  constructor(maxEntries: number) {
    this.#maxEntries = maxEntries;
  }

  /** Number of entries in use. */
  get size(): number {
    return this.#size;
  }

  get isFull(): boolean {
    return this.#size >= this.#maxEntries;
  }

  get bytes(): number {
    return this.#pages.length * PAGE_BYTES;
  }

  /** The highest entry that was ever in use. */
  get last(): Entry {
    return this.#last;
  }

  /** Returns 0 if all entries are in use. */
  allocate(): Entry {
    const free = this.#free;
    if (free !== 0) {
      this.#free = this.word(free, NEXT_WORD);
      this.#size++;
      return free;
    }
    if (this.#last >= this.#maxEntries) {
      return 0;
    }
    this.#last++;
    this.#size++;
    if (this.#last >>> PAGE_BITS >= this.#pages.length) {
      const words = new Int32Array(PAGE_ENTRIES * ENTRY_WORDS);
      this.#pages.push({ words, bytes: Buffer.from(words.buffer) });
    }
    return this.#last;
  }

  release(entry: Entry): void {
    this.setWord(entry, FLAGS_WORD, 0);
    this.setWord(entry, NEXT_WORD, this.#free);
    this.#free = entry;
    this.#size--;
  }

  clear(): void {
    this.#pages = [];
    this.#free = 0;
    this.#last = 0;
    this.#size = 0;
  }

  word(entry: Entry, word: number): number {
    return this.#pages[entry >>> PAGE_BITS]?.words[(entry & POSITION_MASK) * ENTRY_WORDS + word] ?? 0;
  }

  setWord(entry: Entry, word: number, value: number): void {
    this.#pageOf(entry).words[(entry & POSITION_MASK) * ENTRY_WORDS + word] = value;
  }

  setKey(entry: Entry, key: Int32Array): void {
    this.#pageOf(entry).words.set(key, (entry & POSITION_MASK) * ENTRY_WORDS);
  }

  hasKey(entry: Entry, key: Int32Array): boolean {
    const { words } = this.#pageOf(entry);
    const start = (entry & POSITION_MASK) * ENTRY_WORDS;
    for (let word = 0; word < KEY_WORDS; word++) {
      if (words[start + word] !== key[word]) {
        return false;
      }
    }
    return true;
  }

  /** Whether the first words of two entries are equal. */
  areEqual(entry: Entry, other: Entry, count: number): boolean {
    for (let word = 0; word < count; word++) {
      if (this.word(entry, word) !== this.word(other, word)) {
        return false;
      }
    }
    return true;
  }

  /** Returns the value, 64 digits of hex. */
  value(entry: Entry): string {
    const start = this.#valueStart(entry);
    return this.#pageOf(entry).bytes.toString("hex", start, start + VALUE_BYTES);
  }

  /** Sets the value, 64 digits of hex. */
  setValue(entry: Entry, value: string): void {
    this.#pageOf(entry).bytes.write(value, this.#valueStart(entry), "hex");
  }

  #valueStart(entry: Entry): number {
    return ((entry & POSITION_MASK) * ENTRY_WORDS + VALUE_WORD) * WORD_BYTES;
  }

  /** Returns where the key and the value of a slot's entry are. */
  placeOfSlot(entry: Entry): ValuePlace {
    const { bytes } = this.#pageOf(entry);
    const address = (entry & POSITION_MASK) * ENTRY_WORDS * WORD_BYTES;
    return { bytes, address, slot: address + SLOT_START, value: this.#valueStart(entry) };
  }

  /** Copies the key and the value to a place. */
  copyTo(entry: Entry, { bytes, address, slot, value }: ValuePlace): void {
    const page = this.#pageOf(entry).bytes;
    const start = (entry & POSITION_MASK) * ENTRY_WORDS * WORD_BYTES;
    page.copy(bytes, address, start, start + ADDRESS_BYTES);
    if (slot !== undefined) {
      page.copy(bytes, slot, start + SLOT_START, start + SLOT_START + SLOT_BYTES);
    }
    const valueStart = this.#valueStart(entry);
    page.copy(bytes, value, valueStart, valueStart + VALUE_BYTES);
  }

  /** Sets the value to that of a place. */
  setValueAt(entry: Entry, { bytes, value }: ValuePlace): void {
    bytes.copy(this.#pageOf(entry).bytes, this.#valueStart(entry), value, value + VALUE_BYTES);
  }

  #pageOf(entry: Entry): Page {
    const page = this.#pages[entry >>> PAGE_BITS];
    if (page === undefined) {
      throw new RangeError(`the table has no entry ${entry}`);
    }
    return page;
  }
}
