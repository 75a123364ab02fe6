import { type BlockId, type CurrentHeads, isCanonicalIn } from "../core/heads.ts";
import type { DropReason } from "../telemetry/stateMetrics.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import {
  type AwaitedBlock,
  AwaitedBlocks,
  type NodeValue,
  type OnWriteSetRead,
  type ReadOutcome,
} from "./awaitedBlocks.ts";
import { runSlicedWhile } from "./runSliced.ts";
import type { SourceGuard } from "./sources/sourceGuard.ts";
import type { StateKey } from "./stateKey.ts";
import type { ValueStore } from "./store/valueStore.ts";
import type { WriteSet, WriteSetSourceKind } from "./writeSet.ts";

/** A known value that differs from a node's. */
export interface StateDifference {
  readonly key: StateKey;
  readonly block: BlockId;
  /** 64 digits of hex, for a code its hash. */
  readonly known: string;
  readonly actual: string;
  /** The node that returned `actual`. Undefined if its name is not known. */
  readonly node?: string | undefined;
}

export interface BlockQueueOptions {
  readonly chain: string;
  readonly telemetry: Pick<Telemetry, "log" | "metrics">;
  readonly heads: CurrentHeads;
  readonly values: ValueStore;
  readonly guard: Pick<SourceGuard, "havePassed">;
  /** Called with the outcome of each source that was asked. */
  onRead(source: WriteSetSourceKind, outcome: ReadOutcome): void;
  /** Called when a write set is applied. Its values may wait for a check. */
  onApplied(writeSet: WriteSet): void;
  onDropped(reason: DropReason): void;
  /** Called if a node returned another value than the known one. */
  onDifference(difference: StateDifference): void;
  /** Called with an unexpected error of a change. */
  onError(error: unknown): void;
}

/** Applies the write sets of awaited blocks to the known values, one after the other, and undoes blocks that are not canonical. */
export class BlockQueue {
  /** The first is the child of the newest applied block that is canonical. */
  readonly awaited = new AwaitedBlocks();
  readonly #options: BlockQueueOptions;
  #running: Promise<void> | undefined;
  #generation = 0;

  constructor(options: BlockQueueOptions) {
    this.#options = options;
  }

  /** Changes when known values were dropped because of a node. A value that was requested before must not be added. */
  get generation(): number {
    return this.#generation;
  }

  /** Resolves when no change is running. */
  get idle(): Promise<void> | undefined {
    return this.#running;
  }

  /** Adds a value that a node returned for the hash of an applied block. */
  addNow(added: NodeValue, block: BlockId): void {
    const { values, onDifference } = this.#options;
    const { key, value, node, grade } = added;
    if (!values.add(key, block, value, grade)) {
      onDifference({ key, block, known: values.getUnchecked(key, block) ?? "", actual: value, node });
    }
  }

  /** Begins to apply awaited blocks, unless that is running. */
  start(): void {
    this.#running ??= this.#run();
  }

  /** Ends running changes. Values that were requested before must not be added. */
  endGeneration(): void {
    this.#generation++;
  }

  /** Drops what is known and awaited, and begins at the head. */
  restart(latest: BlockId, reason: DropReason | undefined): void {
    this.endGeneration();
    this.awaited.cancelAll();
    this.#options.values.begin(latest);
    if (reason !== undefined) {
      this.#options.onDropped(reason);
    }
  }

  readonly #onRead: OnWriteSetRead = (source, outcome, err) => {
    const { chain, telemetry, onRead } = this.#options;
    telemetry.metrics.stateWriteSets.inc({ chain, source, outcome });
    onRead(source, outcome);
    if (err !== undefined) {
      telemetry.log.warn({ err, chain, source }, "a write set could not be read");
    }
  };

  /** Applies awaited blocks, one after the other. Never rejects. */
  async #run(): Promise<void> {
    try {
      do {
        const next = await this.#prepareNext();
        if (next !== undefined) {
          await this.#applyNext(next);
        }
      } while (this.awaited.first !== undefined || this.#findUndo() !== undefined);
    } catch (error) {
      this.#options.onError(error);
    } finally {
      this.#running = undefined;
    }
  }

  /** Undoes applied blocks that are not canonical. Returns the next block to apply, the child of the newest applied one. */
  async #prepareNext(): Promise<AwaitedBlock | undefined> {
    const { values } = this.#options;
    for (let orphan = this.#findUndo(); orphan !== undefined; orphan = this.#findUndo()) {
      await this.#change(values.undoTo(orphan));
    }
    // A reorganisation can bring back a block whose write set was being applied.
    while (this.awaited.first !== undefined && values.isApplied(this.awaited.first.block)) {
      await this.#finish(this.awaited.first);
    }
    return this.awaited.first;
  }

  /** Returns the number of the newest applied block that is canonical, if a newer one is not. */
  #findUndo(): bigint | undefined {
    const { heads, values } = this.#options;
    const current = heads.current();
    const ancestor = current && values.findNewest((block) => isCanonicalIn(current, block));
    return ancestor !== undefined && ancestor.hash !== values.head?.hash ? ancestor.number : undefined;
  }

  async #applyNext(next: AwaitedBlock): Promise<void> {
    const { values } = this.#options;
    this.awaited.readNext(this.#onRead);
    const read = await next.read(this.#onRead);
    // A reorganisation removed the block, or all values were dropped.
    if (this.awaited.first !== next || this.#findUndo() !== undefined) {
      return;
    }
    if (values.head?.hash !== next.block.parentHash) {
      this.restart(next.block, "gap");
      return;
    }
    if (read === undefined) {
      await this.#beginAt(next, next.hasNewRules ? "fork" : "noWriteSet");
    } else {
      await this.#apply(next, read);
    }
  }

  async #apply(next: AwaitedBlock, writeSet: WriteSet): Promise<void> {
    const { chain, values, guard, telemetry, onApplied } = this.#options;
    const { node } = writeSet;
    values.isChecked = guard.havePassed([...values.sourceNodes, ...(node === undefined ? [] : [node])]);
    const isApplied = await this.#change(values.apply(writeSet));
    if (isApplied === undefined) {
      return;
    }
    if (!isApplied) {
      await this.#beginAt(next, "noWriteSet");
      return;
    }
    telemetry.metrics.stateWriteSetSeconds.observe({ chain }, (performance.now() - next.startMs) / 1_000);
    onApplied(writeSet);
    await this.#finish(next);
    await this.#change(values.prune());
  }

  /** Runs a change of the values. Returns undefined if all values were dropped during it. */
  #change<T>(steps: Generator<unknown, T>): Promise<T | undefined> {
    const generation = this.#generation;
    return runSlicedWhile(steps, () => generation === this.#generation);
  }

  /** Ends the known values at this block, and begins with its own state. */
  #beginAt(awaited: AwaitedBlock, reason: DropReason): Promise<void> {
    this.#options.values.begin(awaited.block);
    this.#options.onDropped(reason);
    return this.#finish(awaited);
  }

  /** Adds the buffered values of a block. Reads of the block go on afterwards. */
  async #finish(awaited: AwaitedBlock): Promise<void> {
    this.awaited.shift(awaited);
    try {
      await this.#change(this.#addBuffered(awaited));
    } finally {
      awaited.settle();
    }
  }

  *#addBuffered({ block, bufferedValues }: AwaitedBlock): Generator<void, void> {
    const generation = this.#generation;
    for (const buffered of bufferedValues) {
      if (generation !== this.#generation) {
        return;
      }
      this.addNow(buffered, block);
      yield;
    }
  }
}
