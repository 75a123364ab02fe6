import type { BlockId } from "../../src/core/heads.ts";
import type { Hash } from "../../src/ethereum/hex.ts";
import { packWrites } from "../../src/state/store/packedWrites.ts";
import type { WriteSet, WriteSetFailure, WriteSetSource, WriteSetSourceKind } from "../../src/state/writeSet.ts";

interface PendingRead {
  readonly block: BlockId;
  readonly signal: AbortSignal;
  readonly resolve: (result: WriteSet | WriteSetFailure) => void;
}

/** A source of write sets that the test answers. */
export class FakeWriteSets implements WriteSetSource {
  readonly kind: WriteSetSourceKind;
  readonly unitsPerBlock: number;
  readonly #results = new Map<Hash, WriteSet | WriteSetFailure>();
  readonly #listeners = new Set<() => void>();
  #pending: PendingRead[] = [];
  reads = 0;

  constructor(kind: WriteSetSourceKind = "trace", unitsPerBlock = 0) {
    this.kind = kind;
    this.unitsPerBlock = unitsPerBlock;
  }

  read(block: BlockId, signal: AbortSignal): Promise<WriteSet | WriteSetFailure> {
    this.reads++;
    const result = this.#results.get(block.hash);
    const { promise, resolve } = Promise.withResolvers<WriteSet | WriteSetFailure>();
    if (result === undefined) {
      this.#pending.push({ block, signal, resolve });
    } else {
      resolve(result);
    }
    for (const listener of this.#listeners) {
      listener();
    }
    return promise;
  }

  /** The blocks that are read and not answered, oldest first. */
  get pending(): readonly PendingRead[] {
    return this.#pending;
  }

  /** Answers the read of this block, now or when it comes. */
  answer(block: BlockId, result: WriteSet | WriteSetFailure): void {
    this.#results.set(block.hash, result);
    const isOfBlock = (read: PendingRead): boolean => read.block.hash === block.hash;
    for (const { resolve } of this.#pending.filter(isOfBlock)) {
      resolve(result);
    }
    this.#pending = this.#pending.filter((read) => !isOfBlock(read));
  }
}

/** The write set of a block that wrote nothing. */
export const emptyWriteSet = ({ number, hash }: BlockId): WriteSet => ({
  block: { number, hash },
  grade: "checked",
  packed: packWrites(new Map()),
});
