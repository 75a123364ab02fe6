import type { Hash } from "../../../src/ethereum/hex.ts";

export interface BranchBlock {
  readonly hash: Hash;
  readonly parentHash: Hash;
  readonly number: number;
}

interface StoredBlock extends BranchBlock {
  readonly writes: ReadonlyMap<string, string>;
}

interface Version {
  readonly number: number;
  readonly value: string;
}

/** The values of keys after each block, on every branch. */
export class BranchedValues {
  readonly #blocks = new Map<Hash, StoredBlock>();
  /** The canonical blocks by number. */
  readonly #canonical: Hash[] = [];
  /** The versions that canonical blocks wrote, oldest first. */
  readonly #versions = new Map<string, Version[]>();

  get head(): BranchBlock | undefined {
    return this.#blocks.get(this.#canonical.at(-1) ?? "0x");
  }

  /** Adds a block whose parent is known, or the first one. It is not canonical before `setHead`. */
  add(block: BranchBlock, writes: ReadonlyMap<string, string>): void {
    this.#blocks.set(block.hash, { ...block, writes });
  }

  isCanonical(hash: Hash): boolean {
    const number = this.#blocks.get(hash)?.number;
    return number !== undefined && this.#canonical[number] === hash;
  }

  /** Makes a block and its ancestors canonical. */
  setHead(hash: Hash): void {
    const branch: StoredBlock[] = [];
    let block = this.#blocks.get(hash);
    while (block !== undefined && !this.isCanonical(block.hash)) {
      branch.unshift(block);
      block = this.#blocks.get(block.parentHash);
    }
    this.#undoAbove(block?.number ?? -1);
    for (const next of branch) {
      this.#canonical[next.number] = next.hash;
      for (const [key, value] of next.writes) {
        const versions = this.#versions.get(key) ?? [];
        versions.push({ number: next.number, value });
        this.#versions.set(key, versions);
      }
    }
  }

  /** Returns the value after a block. Undefined: no block wrote the key. */
  get(hash: Hash, key: string): string | undefined {
    let block = this.#blocks.get(hash);
    while (block !== undefined && !this.isCanonical(block.hash)) {
      const value = block.writes.get(key);
      if (value !== undefined) {
        return value;
      }
      block = this.#blocks.get(block.parentHash);
    }
    const number = block?.number ?? -1;
    return this.#versions.get(key)?.findLast((version) => version.number <= number)?.value;
  }

  #undoAbove(number: number): void {
    for (const hash of this.#canonical.splice(number + 1)) {
      for (const key of this.#blocks.get(hash)?.writes.keys() ?? []) {
        const versions = this.#versions.get(key);
        while (versions !== undefined && (versions.at(-1)?.number ?? -1) > number) {
          versions.pop();
        }
      }
    }
  }
}
