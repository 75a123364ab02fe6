import type { BlockId } from "../../core/heads.ts";
import type { AnswerTarget } from "../calls/storedAnswers.ts";
import { runSliced } from "../runSliced.ts";
import { keyAt } from "../store/keyEncoder.ts";
import { RESTORED } from "../store/valueStore.ts";
import { parseAnswer, parseLine } from "./answerFormat.ts";
import { type SnapshotChain, SnapshotEnded, type SnapshotParts, STEPS_OF_HEADER } from "./packSnapshot.ts";
import {
  type CheckedChunk,
  DamagedSnapshot,
  type PlacedValue,
  readChunk,
  readCodes,
  readHeader,
  readLines,
  readValues,
  type SnapshotHeader,
  snapshotBlock,
} from "./snapshotFormat.ts";

/** A snapshot of another chain, or of other rules. */
class ForeignSnapshot extends Error {
  override readonly name = "ForeignSnapshot";
}

export interface Restored {
  /** The block at which the values are known. Undefined: no block of the snapshot can be used. Only codes are restored. */
  readonly block: BlockId | undefined;
  readonly values: number;
  readonly codes: number;
  readonly answers: number;
}

/** The values to which those of a snapshot are added. */
export interface RestoreTarget {
  /** Undefined: calls are not answered here. */
  readonly answers: AnswerTarget | undefined;
  /** Receives the headers of blocks that were canonical, the oldest first. */
  addHeaders(headers: readonly unknown[]): void;
  /** Returns the newest block of the snapshot that is canonical, if following from there is worth it. */
  findBlock(header: SnapshotHeader): Promise<BlockId | undefined>;
  /** Makes the block readable. Returns false if values of it cannot be added. */
  begin(block: BlockId): boolean;
  /** Drops all values, after some of the snapshot were added. */
  drop(): void;
  /** Whether no values were dropped since the restoring began. */
  isCurrent(): boolean;
}

/**
 * Restores a snapshot, in slices. Known values stay. Throws DamagedSnapshot or ForeignSnapshot: then no value is restored.
 * Throws SnapshotEnded if the target is not current any more.
 */
export const restoreSnapshot = async (
  chunks: AsyncIterable<Uint8Array>,
  chain: SnapshotChain,
  parts: SnapshotParts,
  target: RestoreTarget,
): Promise<Restored | undefined> => {
  let reader: Reader | undefined;
  try {
    for await (const bytes of chunks) {
      const chunk = readChunk(bytes);
      if (reader === undefined) {
        const header = readHeader(chunk);
        checkChain(header, chain);
        reader = new Reader(header, chain, parts, target);
      } else {
        // The block of the values is found with the headers.
        if (chunk.kind !== "headers") {
          await reader.begin();
        }
        await runSliced(reader.read(chunk));
      }
    }
    return reader?.finish();
  } catch (error) {
    if (reader?.hasBegun === true && !(error instanceof SnapshotEnded)) {
      target.drop();
    }
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
  readonly #target: RestoreTarget;
  #block: BlockId | undefined;
  /** Newer values were not known at the block. */
  #minAge = 0;
  #chunks = 1;
  #values = 0;
  #codes = 0;
  #answers = 0;
  #isBegun = false;
  #isComplete = false;

  constructor(header: SnapshotHeader, chain: SnapshotChain, parts: SnapshotParts, target: RestoreTarget) {
    const isSame = ({ name, address }: SnapshotHeader["nodes"][number]): boolean =>
      chain.nodes.some((node) => node.name === name && node.address === address);
    this.#header = header;
    this.#parts = parts;
    this.#nodes = header.nodes.map((node) => (isSame(node) ? node.name : undefined));
    this.#target = target;
  }

  /** Whether values may have been added. */
  get hasBegun(): boolean {
    return this.#block !== undefined;
  }

  /** Restores what the header has, and makes a block readable. Does nothing if it was called before. */
  async begin(): Promise<void> {
    if (this.#isBegun) {
      return;
    }
    this.#isBegun = true;
    const { number, costs } = this.#header;
    const { values, cost } = this.#parts;
    // Values may be of a node that is gone, or has another URL.
    const block = this.#nodes.includes(undefined) ? undefined : await this.#target.findBlock(this.#header);
    if (block === undefined) {
      return;
    }
    // They decide whether following goes on.
    cost.resume(costs, block.number);
    if (!this.#target.begin(block)) {
      return;
    }
    this.#block = block;
    this.#minAge = Number(BigInt(number) - block.number);
    this.#addDefaults();
    values.carriers.add(RESTORED);
    values.isTrusted = false;
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
    } else if (chunk.kind === "headers") {
      yield* this.#addHeaders(chunk);
    } else if (chunk.kind === "answers") {
      yield* this.#addAnswers(chunk);
    } else {
      this.#isComplete = chunk.kind === "end";
    }
  }

  *#addCodes(chunk: CheckedChunk): Generator<void, void> {
    for (const { code } of readCodes(chunk)) {
      // The code of a proven hash must be the right one, so that its hash is computed.
      this.#parts.values.storeCode(code);
      this.#codes++;
      yield;
    }
  }

  *#addValues(chunk: CheckedChunk): Generator<void, void> {
    const block = this.#block;
    for (const value of block === undefined ? [] : readValues(chunk)) {
      this.#checkCurrent();
      if (block !== undefined && this.#add(value, block)) {
        this.#values++;
      }
      yield;
    }
  }

  /** Returns false for a value that was not known at the block. */
  #add({ field, place, age, isUsed }: PlacedValue, block: BlockId): boolean {
    const { values } = this.#parts;
    if (age < this.#minAge) {
      return false;
    }
    if (isUsed) {
      values.used.record(keyAt(field, place), block.number);
    }
    return values.restore({ field, place }, block);
  }

  *#addHeaders(chunk: CheckedChunk): Generator<void, void> {
    const headers: unknown[] = [];
    for (const text of readLines(chunk)) {
      headers.push(parseLine(text));
      yield* STEPS_OF_HEADER;
    }
    this.#target.addHeaders(headers);
  }

  /** Adds answers to calls, in a step for each key that they read. */
  *#addAnswers(chunk: CheckedChunk): Generator<void, void> {
    const block = this.#block;
    const { answers } = this.#target;
    if (block === undefined || answers === undefined) {
      return;
    }
    for (const text of readLines(chunk)) {
      this.#checkCurrent();
      const { stored, age, node: position } = parseAnswer(text);
      const node = this.#nodes[position];
      const answered = snapshotBlock(this.#header, age);
      if (age >= this.#minAge && node !== undefined && answered !== undefined) {
        answers.addAnswer({ ...stored, answer: { ...stored.answer, node, block: answered } }, block);
        this.#answers++;
      }
      yield* stored.answer.reads.keys.map(() => undefined);
      yield;
    }
  }

  #addDefaults(): void {
    for (const [position, { defaults }] of this.#header.nodes.entries()) {
      const node = this.#nodes[position];
      if (defaults !== undefined && node !== undefined) {
        const { gas, hasZeroSender, fromHeader } = defaults;
        const parsed = { gas: BigInt(gas), hasZeroSender, fromHeader: new Set(fromHeader) };
        this.#target.answers?.addDefaults({ node, defaults: parsed });
      }
    }
  }

  #checkCurrent(): void {
    if (!this.#target.isCurrent()) {
      throw new SnapshotEnded("the values were dropped");
    }
  }

  finish(): Restored {
    if (!this.#isComplete) {
      throw new DamagedSnapshot("its end is missing");
    }
    return { block: this.#block, values: this.#values, codes: this.#codes, answers: this.#answers };
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
