import { LRUCache } from "lru-cache";
import type { StateKey } from "../stateKey.ts";
import type { Entry } from "./entryPages.ts";
import { KeyEncoder } from "./keyEncoder.ts";
import { FETCHED, KNOWN, type ValueTable } from "./valueTable.ts";

/** Names the state after one block at one time. It is a part of the keys of its values. */
export type Version = number;

const MAX_VERSIONS = 10_000;
/** No block begins these values: they hold at their version alone. */
const NO_BLOCK = -1;

/**
 * Values that nodes returned for blocks that are not followed: old blocks, and those of chains without write sets. Executions that must
 * not read the values that write sets carried from block to block read here too. They are in the table of all values.
 */
export class UnfollowedValues {
  readonly #table: ValueTable;
  readonly #isPinned: (entry: Entry) => boolean;
  readonly #key = new KeyEncoder();
  /** A version that is evicted is not found any more, so that its values are evicted too. */
  readonly #versions = new LRUCache<string, Version>({ max: MAX_VERSIONS });
  #newest: Version = 0;

  constructor(table: ValueTable, isPinned: (entry: Entry) => boolean) {
    this.#table = table;
    this.#isPinned = isPinned;
  }

  /** Returns the version with this name, which contains the hash of the block. */
  versionOf(name: string): Version {
    const known = this.#versions.get(name);
    if (known !== undefined) {
      return known;
    }
    this.#newest++;
    this.#versions.set(name, this.#newest);
    return this.#newest;
  }

  /** Returns a value: 64 digits of hex, of a code the hash. The hash of an empty code is zero here. */
  read(key: StateKey, version: Version): string | undefined {
    const entry = this.#table.find(this.#key.encode(key, version), NO_BLOCK);
    if (!this.#table.has(entry, KNOWN)) {
      return undefined;
    }
    this.#table.touch(entry);
    return this.#table.value(entry);
  }

  /** Adds a value. It is dropped if there is no room for a single one. */
  enter(key: StateKey, version: Version, value: string): void {
    const table = this.#table;
    const encoded = this.#key.encode(key, version);
    let entry = table.find(encoded, NO_BLOCK) || table.add(encoded, NO_BLOCK, 0);
    while (entry === 0 && table.evict(this.#isPinned)) {
      entry = table.add(encoded, NO_BLOCK, 0);
    }
    if (entry !== 0) {
      table.setValue(entry, value, FETCHED);
    }
  }
}
