import type { Entry } from "./entryPages.ts";
import { FIELD_CODES } from "./keyEncoder.ts";
import { KNOWN, type ValueTable } from "./valueTable.ts";

/** Entries that one step looks at. A step takes some 10 microseconds. */
const STEP_ENTRIES = 1_024;
const STEPS_PER_BLOCK = 16;

/**
 * Removes the slots that a block cleared, once no reader can see the blocks before it. Nothing lists the slots of an account,
 * so that each block looks at a part of the table. Until a whole pass has ended, the marker of the block hides these slots.
 */
export class ClearedStorage {
  readonly #table: ValueTable;
  /** The markers of the next pass, by their address, oldest first. */
  #retired = new Map<number, Entry[]>();
  /** The markers of the pass that runs. */
  #markers = new Map<number, Entry[]>();
  #position: Entry = 0;
  #count = 0;

  constructor(table: ValueTable) {
    this.#table = table;
  }

  /** Number of markers. Without any, nobody searches for one. */
  get count(): number {
    return this.#count;
  }

  add(): void {
    this.#count++;
  }

  /** Called before a reorganisation removes an entry, which may be a marker. */
  undo(entry: Entry): void {
    if (this.#table.field(entry) === FIELD_CODES.storage) {
      this.#count--;
    }
  }

  /** Called when all readable blocks are at or above the marker's block. */
  retire(marker: Entry): void {
    const hash = this.#table.addressHash(marker);
    const others = this.#retired.get(hash);
    if (others === undefined) {
      this.#retired.set(hash, [marker]);
    } else {
      others.push(marker);
    }
  }

  /** Whether a slot would become zero for readers if its entry were removed: a retired marker of its address is older. */
  isNeeded(slot: Entry): boolean {
    if (this.#count === 0 || this.#table.field(slot) !== FIELD_CODES.slot) {
      return false;
    }
    const hash = this.#table.addressHash(slot);
    return this.#isOverMarker(slot, this.#markers.get(hash)) || this.#isOverMarker(slot, this.#retired.get(hash));
  }

  #isOverMarker(slot: Entry, markers: readonly Entry[] = []): boolean {
    const table = this.#table;
    // A marker without a value makes no slot zero.
    const oldest = markers.find((marker) => table.has(marker, KNOWN) && table.isSameAddress(marker, slot));
    return oldest !== undefined && table.from(oldest) <= table.from(slot);
  }

  clear(): void {
    this.#retired.clear();
    this.#markers.clear();
    this.#count = 0;
  }

  /** Looks at a part of the table. */
  *sweep(): Generator<void, void> {
    for (let step = 0; step < STEPS_PER_BLOCK && this.#begin(); step++) {
      const end = Math.min(this.#position + STEP_ENTRIES, this.#table.last + 1);
      for (let entry = this.#position; entry < end; entry++) {
        this.#removeIfCleared(entry);
      }
      this.#position = end;
      if (end > this.#table.last) {
        this.#finish();
      }
      yield;
    }
  }

  /** Begins a pass if none runs. Returns false if there is nothing to remove. */
  #begin(): boolean {
    if (this.#markers.size > 0) {
      return true;
    }
    this.#markers = this.#retired;
    this.#retired = new Map();
    this.#position = 1;
    return this.#markers.size > 0;
  }

  #removeIfCleared(entry: Entry): void {
    const table = this.#table;
    const markers = this.#markers.get(table.addressHash(entry));
    if (markers === undefined || table.field(entry) !== FIELD_CODES.slot || !table.has(entry, 0)) {
      return;
    }
    const isCleared = markers.some(
      (marker) => table.isSameAddress(marker, entry) && table.from(entry) < table.from(marker),
    );
    if (isCleared) {
      table.remove(entry);
    }
  }

  #finish(): void {
    for (const marker of [...this.#markers.values()].flat()) {
      this.#table.remove(marker);
      this.#count--;
    }
    this.#markers.clear();
  }
}
