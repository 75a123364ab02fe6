import type { BlockId } from "../../core/heads.ts";
import { runSliced } from "../runSliced.ts";
import type { SnapshotChain, SnapshotParts } from "./packSnapshot.ts";
import {
  type CheckedChunk,
  DamagedSnapshot,
  readChunk,
  readCodes,
  readHeader,
  readValues,
  type SnapshotHeader,
  type SnapshotValue,
  snapshotBlock,
} from "./snapshotFormat.ts";

/** A snapshot of another chain, or of other rules. */
class ForeignSnapshot extends Error {
  override readonly name = "ForeignSnapshot";
}

export interface Restored {
  /** The block at which the values are known. Undefined: no block of the snapshot can be used. Only evidence and codes are restored. */
  readonly block: BlockId | undefined;
  readonly values: number;
  readonly codes: number;
}

/**
 * Restores a snapshot into empty values, in slices. `findBlock` returns the newest block of the snapshot that is canonical, if
 * following from there is worth it. Throws DamagedSnapshot or ForeignSnapshot: then nothing is restored.
 */
export const restoreSnapshot = async (
  chunks: AsyncIterable<Uint8Array>,
  chain: SnapshotChain,
  parts: SnapshotParts,
  findBlock: (header: SnapshotHeader) => Promise<BlockId | undefined>,
): Promise<Restored | undefined> => {
  let reader: Reader | undefined;
  try {
    for await (const bytes of chunks) {
      const chunk = readChunk(bytes);
      if (reader === undefined) {
        const header = readHeader(chunk);
        checkChain(header, chain);
        reader = new Reader(header, chain, parts, await findBlock(header));
      } else {
        await runSliced(reader.read(chunk));
      }
    }
    return reader?.finish();
  } catch (error) {
    parts.sourced.clear();
    throw error;
  }
};

const checkChain = (header: SnapshotHeader, chain: SnapshotChain): void => {
  for (const field of ["chainId", "genesis", "rules"] as const) {
    if (header[field] !== chain[field]) {
      throw new ForeignSnapshot(`${field} is ${header[field]}, expected ${chain[field]}`);
    }
  }
};

class Reader {
  readonly #header: SnapshotHeader;
  readonly #parts: SnapshotParts;
  /** The nodes of the snapshot that are still the same. */
  readonly #nodes: readonly (string | undefined)[];
  readonly #block: BlockId | undefined;
  /** Newer values were not known at the block. */
  readonly #minAge: number;
  #chunks = 1;
  #values = 0;
  #codes = 0;
  #isComplete = false;

  constructor(header: SnapshotHeader, chain: SnapshotChain, parts: SnapshotParts, block: BlockId | undefined) {
    const isSame = ({ name, address }: SnapshotHeader["nodes"][number]): boolean =>
      chain.nodes.some((node) => node.name === name && node.address === address);
    this.#header = header;
    this.#parts = parts;
    this.#nodes = header.nodes.map((node) => (isSame(node) ? node.name : undefined));
    const areCarriersSame = header.carriers.every((name) => name === null || this.#nodes.includes(name));
    this.#block = areCarriersSame ? block : undefined;
    this.#minAge = this.#block === undefined ? 0 : Number(BigInt(header.number) - this.#block.number);
    if (this.#block !== undefined) {
      parts.sourced.begin(this.#block);
    }
  }

  /** Adds the content of a chunk, a value a step. */
  *read(chunk: CheckedChunk): Generator<void, void> {
    if (chunk.id !== this.#header.id || chunk.number !== this.#chunks || this.#isComplete) {
      throw new DamagedSnapshot("a chunk is missing, or of another snapshot");
    }
    this.#chunks++;
    if (chunk.kind === "codes") {
      yield* this.#addCodes(chunk);
    } else if (chunk.kind === "values") {
      yield* this.#addValues(chunk);
    } else {
      this.#isComplete = chunk.kind === "end";
    }
  }

  *#addCodes(chunk: CheckedChunk): Generator<void, void> {
    for (const { hash, code } of readCodes(chunk)) {
      this.#parts.values.storeCode(code, `0x${hash}`);
      this.#codes++;
      yield;
    }
  }

  *#addValues(chunk: CheckedChunk): Generator<void, void> {
    const block = this.#block;
    for (const value of block === undefined ? [] : readValues(chunk)) {
      if (block !== undefined && this.#add(value, block)) {
        this.#values++;
      }
      yield;
    }
  }

  /** Returns false for a value of a node that is not the same any more, and for one that was not known at the block. */
  #add({ key, value, node: position, age, isUsed }: SnapshotValue, block: BlockId): boolean {
    const { values, cost } = this.#parts;
    const node = position === undefined ? undefined : this.#nodes[position];
    if (age < this.#minAge || (position !== undefined && node === undefined)) {
      return false;
    }
    if (isUsed) {
      cost.usedKeys.record(key, block.number);
    }
    return values.restore({ key, value, node }, block);
  }

  finish(): Restored {
    if (!this.#isComplete) {
      throw new DamagedSnapshot("its end is missing");
    }
    const { sourced, trust, cost } = this.#parts;
    for (const [position, { progress }] of this.#header.nodes.entries()) {
      const name = this.#nodes[position];
      if (name !== undefined && progress !== undefined) {
        trust.evidenceOf(name).resume(progress);
      }
    }
    if (this.#block !== undefined) {
      sourced.addCarriers(
        this.#header.carriers.map((name) => ({
          node: name ?? undefined,
          evidence: name === null ? undefined : trust.evidenceOf(name),
        })),
      );
      cost.resume(this.#header.costs, this.#block.number);
    }
    return { block: this.#block, values: this.#values, codes: this.#codes };
  }
}

/** Returns the newest block of a snapshot that `isCanonical` accepts. */
export const newestCanonical = (
  header: SnapshotHeader,
  isCanonical: (block: BlockId) => boolean,
): BlockId | undefined => {
  for (let age = 0; age < header.hashes.length; age++) {
    const block = snapshotBlock(header, age);
    if (block !== undefined && isCanonical(block)) {
      return block;
    }
  }
  return undefined;
};
