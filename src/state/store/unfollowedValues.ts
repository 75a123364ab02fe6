import { LRUCache } from "lru-cache";
import type { StateKey } from "../stateKey.ts";
import { ENTRY_BYTES } from "./entryPages.ts";
import { KeyEncoder } from "./keyEncoder.ts";
import { FETCHED, KNOWN, ValueTable } from "./valueTable.ts";

/** Names the state after one block at one time. It has no children: no other version has its values. */
export type Version = number;

const BUCKET_BYTES = 8;
const MAX_VERSIONS = 10_000;

/**
 * Values that nodes returned for blocks that are not followed: old blocks, and those of chains without write sets. Executions that must
 * not read the values that write sets carried from block to block read here too.
 */
export class UnfollowedValues {
  readonly #table: ValueTable;
  readonly #key = new KeyEncoder();
  /** A version that is evicted is not found any more, so that its values are evicted too. */
  readonly #versions = new LRUCache<string, Version>({ max: MAX_VERSIONS });
  #newest: Version = 0;

  constructor(maxBytes: number) {
    this.#table = new ValueTable(Math.floor(maxBytes / (ENTRY_BYTES + BUCKET_BYTES)));
  }

  get bytes(): number {
    return this.#table.bytes;
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
    const table = this.#table;
    const entry = table.find(this.#key.encode(key, version), version);
    if (!table.isOfBlock(entry, version) || !table.has(entry, KNOWN)) {
      return undefined;
    }
    table.touch(entry);
    return table.value(entry);
  }

  /** Adds a value. It is dropped if there is no room for a single one. */
  enter(key: StateKey, version: Version, value: string): void {
    const table = this.#table;
    const encoded = this.#key.encode(key, version);
    const found = table.find(encoded, version);
    let entry = table.isOfBlock(found, version) ? found : table.add(encoded, version, 0);
    while (entry === 0 && table.evict(() => false)) {
      entry = table.add(encoded, version, 0);
    }
    if (entry !== 0) {
      table.setValue(entry, value, FETCHED);
    }
  }

  clear(): void {
    this.#table.clear();
  }
}
