import type { Grade } from "../../core/grade.ts";
import type { BlockId } from "../../core/heads.ts";
import type { Hash } from "../../ethereum/hex.ts";
import type { ClearedStorage } from "./clearedStorage.ts";
import type { Entry } from "./entryPages.ts";
import { FIELD_CODES } from "./keyEncoder.ts";
import { KNOWN, type ValueTable, WRITTEN } from "./valueTable.ts";

/** A followed block, with the entries that begin at it. An entry may have been removed since, and be in use for another key. */
interface FollowedBlock {
  readonly hash: Hash;
  /** The entries that say that all slots of an account were written. */
  readonly markers: Entry[];
  /** All others. */
  readonly entries: Entry[];
  /** The number of entries of its write set. */
  written: number;
  /** The newest block, up to this one, whose write set is not proven. Values that were proven before it are not any more. */
  readonly unproven: number;
  /** The newest block, up to this one, whose write set is stated. */
  readonly stated: number;
}

/** Below all blocks: each write set is proven. */
const NONE = -1;

const followedBlock = (hash: Hash, unproven: number, stated: number): FollowedBlock => ({
  ...{ hash, markers: [], entries: [], written: 0, unproven, stated },
});

/** On slow chains, more blocks than those of this time are readable. */
const READABLE_MS = 300_000;
const MIN_READABLE_BLOCKS = 256;
/** Returns the number of the newest blocks whose state can be read. */
export const readableBlocks = (blockTimeMs: number): number =>
  Math.max(MIN_READABLE_BLOCKS, Math.ceil(READABLE_MS / blockTimeMs));

/**
 * The newest followed blocks, with the entries that begin at each. The readable ones are a range without gaps.
 * It removes the entries that no readable block needs.
 */
export class FollowedBlocks {
  readonly #table: ValueTable;
  readonly #cleared: ClearedStorage;
  readonly #maxHistory: number;
  readonly #blocks = new Map<number, FollowedBlock>();
  #oldest = 0;
  /** Below `#oldest` while nothing is readable. */
  #head = -1;
  /** Older entries than those of the blocks up to this one are removed. */
  #trimmed = 0;
  #history = 0;
  /** The newest blocks whose state can be read, if their write sets are not too large. */
  maxReadable = MIN_READABLE_BLOCKS;

  /** `maxHistory`: the largest number of entries of the write sets of all readable blocks but the oldest. */
  constructor(table: ValueTable, cleared: ClearedStorage, maxHistory: number) {
    this.#table = table;
    this.#cleared = cleared;
    this.#maxHistory = maxHistory;
  }

  /** Number of the newest readable block. */
  get newest(): number {
    return this.#head;
  }

  /** Number of the oldest readable block. */
  get oldest(): number {
    return this.#oldest;
  }

  /** The newest readable block. */
  get head(): BlockId | undefined {
    return this.idOf(this.#head);
  }

  /** Returns the newest readable block that `isCanonical` accepts. */
  findNewest(isCanonical: (block: BlockId) => boolean): BlockId | undefined {
    for (let number = this.#head; number >= this.#oldest; number--) {
      const block = this.idOf(number);
      if (block !== undefined && isCanonical(block)) {
        return block;
      }
    }
    return undefined;
  }

  /** Lists the entries of blocks above one, up to another, that say that all slots of an account were written. */
  *markersSince(since: number, at: number): Generator<Entry, void> {
    for (let number = since + 1; number <= at; number++) {
      yield* this.#blocks.get(number)?.markers ?? [];
    }
  }

  /** Returns a block by its number, if it is still followed. */
  idOf(number: number): BlockId | undefined {
    const block = this.#blocks.get(number);
    return block && { number: BigInt(number), hash: block.hash };
  }

  /** Whether the block is in the readable range. */
  has({ number, hash }: BlockId): boolean {
    const at = Number(number);
    return at <= this.#head && at >= this.#oldest && this.#blocks.get(at)?.hash === hash;
  }

  /** Forgets all blocks, and makes one readable. */
  begin({ number, hash }: BlockId): void {
    this.clear();
    this.#head = Number(number);
    this.#oldest = this.#head;
    this.#trimmed = this.#head;
    this.#blocks.set(this.#head, followedBlock(hash, NONE, NONE));
  }

  clear(): void {
    this.#blocks.clear();
    this.#head = -1;
    this.#oldest = 0;
    this.#trimmed = 0;
    this.#history = 0;
  }

  /** Adds the block above the newest one. It is not readable before `extendTo`. Returns its number. */
  add(hash: Hash, grade: Grade): number {
    const number = this.#head + 1;
    const before = this.#blocks.get(this.#head);
    const unproven = grade === "proven" ? (before?.unproven ?? this.#head) : number;
    const stated = grade === "stated" ? number : (before?.stated ?? this.#head);
    this.#blocks.set(number, followedBlock(hash, unproven, stated));
    return number;
  }

  /** Returns the weakest grade of the write sets of the blocks above a number, up to another. `proven` if there are none. */
  gradeSince(since: number, at: number): Grade {
    const { unproven = at, stated = at } = this.#blocks.get(at) ?? {};
    return unproven <= since ? "proven" : stated <= since ? "checked" : "stated";
  }

  /** Adds an entry that begins at a block. */
  addEntry(number: number, entry: Entry): void {
    const block = this.#blocks.get(number);
    block?.[this.#table.field(entry) === FIELD_CODES.storage ? "markers" : "entries"].push(entry);
    if (block !== undefined && number > this.#oldest && this.#table.has(entry, WRITTEN)) {
      block.written++;
      this.#history++;
    }
  }

  /** Makes an added block readable. The oldest ones end if they are too many. */
  extendTo(number: number): void {
    this.#head = number;
    const areTooMany = () => number - this.#oldest >= this.maxReadable || this.#history > this.#maxHistory;
    while (areTooMany() && this.dropOldest()) {
      // Each step ends one block.
    }
  }

  /** Makes the oldest readable block unreadable. Returns false if it is the only one. */
  dropOldest(): boolean {
    if (this.#oldest >= this.#head) {
      return false;
    }
    this.#oldest += 1;
    this.#history -= this.#blocks.get(this.#oldest)?.written ?? 0;
    return true;
  }

  /** Makes all blocks above this number unreadable. */
  endAt(number: number): void {
    this.#head = number;
  }

  /** Removes a block. Returns its entries. */
  remove(number: number): readonly Entry[] {
    const { markers = [], entries = [], written = 0 } = this.#blocks.get(number) ?? {};
    this.#blocks.delete(number);
    this.#history -= written;
    return [...markers, ...entries];
  }

  /** Whether an entry must stay: a reader may need a write to know that an older value ended. */
  isPinned(entry: Entry): boolean {
    const table = this.#table;
    return (
      table.has(entry, WRITTEN) &&
      (table.from(entry) > this.#trimmed || table.field(entry) === FIELD_CODES.storage || this.#cleared.isNeeded(entry))
    );
  }

  /** Removes the values that ended before the oldest readable block. A second trim can run between two steps of the first. */
  *trim(): Generator<void, void> {
    while (this.#trimmed < this.#oldest) {
      const number = this.#trimmed + 1;
      const { markers = [], entries = [] } = this.#blocks.get(number) ?? {};
      // They decide which other entries of the block must stay.
      for (let marker = markers.pop(); marker !== undefined; marker = markers.pop()) {
        this.#trimMarker(marker, number);
        yield;
      }
      for (let entry = entries.pop(); entry !== undefined; entry = entries.pop()) {
        this.#trimEntry(entry, number);
        yield;
      }
      this.#trimmed = Math.max(this.#trimmed, number);
      this.#blocks.delete(number - 1);
    }
  }

  #trimMarker(marker: Entry, number: number): void {
    if (this.#table.isOfBlock(marker, number)) {
      // It removes the marker itself: a pass that runs may still need that of an earlier block.
      this.#cleared.retire(marker);
    }
  }

  #trimEntry(entry: Entry, number: number): void {
    const table = this.#table;
    if (!table.isOfBlock(entry, number) || !table.has(entry, WRITTEN)) {
      return;
    }
    table.removeOlder(entry);
    if (!table.has(entry, KNOWN) && !this.#cleared.isNeeded(entry)) {
      table.remove(entry);
    }
  }
}
