import type { Grade } from "../core/grade.ts";
import type { BlockId, Heads, RingBlock } from "../core/heads.ts";
import type { StateKey } from "./stateKey.ts";
import type { WriteSet, WriteSetFailure, WriteSetSource, WriteSetSourceKind } from "./writeSet.ts";

/** A value that a node returned for a block's hash: 64 digits of hex, of a code the hash. */
export interface NodeValue {
  readonly key: StateKey;
  readonly value: string;
  /** Undefined if the name of the node is not known. */
  readonly node?: string | undefined;
  /** Default: stated. `proven`: it follows from the state root of the block. */
  readonly grade?: Grade | undefined;
}

/** Later values are dropped, and asked again after the block. */
const MAX_BUFFERED_VALUES = 4_096;

/** `shared`: another replica has read it. */
export type ReadOutcome = "read" | "shared" | WriteSetFailure;

/** Called with the result of each source that was asked. `error` is what the source threw. */
export type OnWriteSetRead = (kind: WriteSetSourceKind, outcome: ReadOutcome, error?: unknown) => void;

/** A canonical block whose write set is not applied yet. */
export class AwaitedBlock {
  readonly block: RingBlock;
  /** Undefined: the rules changed at this block, so that no write set is enough. */
  readonly #sources: readonly WriteSetSource[] | undefined;
  readonly #ending = new AbortController();
  readonly #settled = Promise.withResolvers<void>();
  /** Values for the block, before its write set is here. */
  #buffered: NodeValue[] = [];
  readonly startMs = performance.now();
  readonly #writeSet = Promise.withResolvers<WriteSet | undefined>();
  #isRead = false;

  constructor(block: RingBlock, sources: readonly WriteSetSource[] | undefined) {
    this.block = block;
    this.#sources = sources;
  }

  get hasNewRules(): boolean {
    return this.#sources === undefined;
  }

  /** Resolves when the write set is applied, or when it is clear that it will not be. */
  get settled(): Promise<void> {
    return this.#settled.promise;
  }

  get bufferedValues(): readonly NodeValue[] {
    return this.#buffered;
  }

  buffer(value: NodeValue): void {
    if (this.#buffered.length < MAX_BUFFERED_VALUES) {
      this.#buffered.push(value);
    }
  }

  /** Asks the sources in order. Resolves with undefined if none has the write set, and on `cancel`. */
  read(onRead: OnWriteSetRead): Promise<WriteSet | undefined> {
    if (!this.#isRead) {
      this.#isRead = true;
      this.#readFirst(onRead).then(this.#writeSet.resolve, this.#writeSet.reject);
    }
    return this.#writeSet.promise;
  }

  settle(): void {
    this.#settled.resolve();
  }

  /** Ends a read that is no longer needed. */
  cancel(): void {
    this.#ending.abort();
    this.#writeSet.resolve(undefined);
    this.settle();
  }

  async #readFirst(onRead: OnWriteSetRead): Promise<WriteSet | undefined> {
    const { signal } = this.#ending;
    for (const source of this.#sources ?? []) {
      const result = await this.#readFrom(source, onRead);
      if (signal.aborted) {
        return undefined;
      }
      if (result === undefined) {
        continue;
      }
      if (typeof result === "string") {
        onRead(source.kind, result);
      } else if (result.block.hash !== this.block.hash) {
        onRead(source.kind, "mismatch");
      } else {
        onRead(source.kind, result.isShared === true ? "shared" : "read");
        return result;
      }
    }
    return undefined;
  }

  /** Returns undefined if the source throws: the next one is asked. */
  async #readFrom(source: WriteSetSource, onRead: OnWriteSetRead): Promise<WriteSet | WriteSetFailure | undefined> {
    try {
      return await source.read(this.block, this.#ending.signal);
    } catch (error) {
      onRead(source.kind, "error", error);
      return undefined;
    }
  }
}

/** Write sets that are read at the same time. With blocks of 200 ms and a second for each read, fewer would fall behind. */
const MAX_CONCURRENT_READS = 6;

/** Returns the blocks above `tip`, or undefined if the ring does not link them. */
export const linkedBlocks = (heads: Heads, tip: BlockId): readonly RingBlock[] | undefined => {
  const blocks: RingBlock[] = [];
  let parentHash = tip.hash;
  for (let number = tip.number + 1n; number <= heads.latest.number; number++) {
    const block = heads.at(number);
    if (block?.parentHash !== parentHash) {
      return undefined;
    }
    parentHash = block.hash;
    blocks.push(block);
  }
  return blocks;
};

/** The canonical blocks whose write sets are not applied yet: ascending and linked. */
export class AwaitedBlocks {
  #blocks: AwaitedBlock[] = [];

  get first(): AwaitedBlock | undefined {
    return this.#blocks[0];
  }

  get length(): number {
    return this.#blocks.length;
  }

  get last(): AwaitedBlock | undefined {
    return this.#blocks.at(-1);
  }

  find({ number, hash }: BlockId): AwaitedBlock | undefined {
    const awaited = this.first && this.#blocks[Number(number - this.first.block.number)];
    return awaited?.block.hash === hash ? awaited : undefined;
  }

  push(awaited: AwaitedBlock): void {
    this.#blocks.push(awaited);
  }

  /** Removes this block if it is the first. */
  shift(awaited: AwaitedBlock): void {
    if (this.first === awaited) {
      this.#blocks.shift();
    }
  }

  /** Starts to read the write sets of the next blocks. */
  readNext(onRead: OnWriteSetRead): void {
    for (const awaited of this.#blocks.slice(0, MAX_CONCURRENT_READS)) {
      // The follower sees the error when it applies the block.
      awaited.read(onRead).catch(() => undefined);
    }
  }

  /** Removes the blocks that a reorganisation replaced, and ends their reads. */
  cancelOrphans(isCanonical: (block: BlockId) => boolean): void {
    const orphan = this.#blocks.findIndex(({ block }) => !isCanonical(block));
    this.#cancelFrom(orphan < 0 ? this.#blocks.length : orphan);
  }

  cancelAll(): void {
    this.#cancelFrom(0);
  }

  #cancelFrom(index: number): void {
    for (const awaited of this.#blocks.splice(index)) {
      awaited.cancel();
    }
  }
}
