import type { BlockId, HeadChange, Heads, RingBlock } from "../core/heads.ts";
import type { DropReason } from "../telemetry/stateMetrics.ts";
import {
  AwaitedBlock,
  AwaitedBlocks,
  isCanonicalIn,
  linkedBlocks,
  type NodeValue,
  type OnWriteSetRead,
  type SourcedWriteSet,
} from "./awaitedBlocks.ts";
import type { StateDifference } from "./originComparison.ts";
import { runSlicedWhile } from "./runSliced.ts";
import { SlidingSum } from "./slidingSum.ts";
import { SourcedValues } from "./sourcedValues.ts";
import type { StateCost } from "./stateCost.ts";
import type { StateKey } from "./stateKey.ts";
import type { ValueStore } from "./store/valueStore.ts";
import type { WriteSetSource } from "./writeSet.ts";

export interface StateFollowerOptions {
  readonly heads: {
    readonly blockTimeMs: number;
    current(): Heads | undefined;
    subscribe(listener: (change: HeadChange) => void): () => void;
  };
  /** In the order in which they are asked. */
  readonly sources: readonly WriteSetSource[];
  readonly cost: Pick<StateCost, "shouldFollow" | "shouldCatchUp">;
  readonly values: ValueStore;
  /** The values with their givers, if another follower has released them. Default: nothing is known. */
  readonly sourced?: SourcedValues | undefined;
  /** Whether the same rules apply to a block and to its parent. */
  hasSameRules(parent: RingBlock, block: RingBlock): boolean;
  readonly onRead: OnWriteSetRead;
  /** Called with each new head. */
  onHead(isFollowing: boolean): void;
  /** Called when a block's write set is applied, with the time since its head. */
  onApplied(seconds: number): void;
  onDropped(reason: DropReason): void;
  /** Called if a node returned another value than the known one. */
  onDifference(difference: StateDifference): void;
  /** Called with an unexpected error. All values are dropped. `isEnd`: no block is followed any more. */
  onFault(error: unknown, isEnd: boolean): void;
}

/** More missing blocks are a gap: reading their write sets takes longer than learning the values again. */
const MAX_MISSING_MS = 120_000;
/** On slow chains, more blocks than that are read. */
const MIN_MISSING_BLOCKS = 128;
/** Of a code, which is hashed in steps of about a microsecond. */
const BYTES_PER_STEP = 200;
/** This number of faults in FAULT_PERIOD_MS ends the following: the next block would probably fail too. */
const MAX_FAULTS = 3;
const FAULT_PERIOD_MS = 600_000;

/**
 * Follows the canonical chain: applies the write set of each new block to the known values, in order, and undoes blocks that a
 * reorganisation removed. At a block without a write set, the known values end and begin again.
 */
export class StateFollower {
  readonly #options: StateFollowerOptions;
  readonly #unsubscribe: () => void;
  /** The first is the child of the newest applied block that is canonical. */
  readonly #awaited = new AwaitedBlocks();
  readonly #sourced: SourcedValues;
  #latest: BlockId | undefined;
  #running: Promise<void> | undefined;
  #isReleased = false;
  #isPaused = false;
  #isEnded = false;
  readonly #faults = new SlidingSum(FAULT_PERIOD_MS);
  /** Changes when all known values were dropped. */
  #epoch = 0;
  #generation = 0;

  constructor(options: StateFollowerOptions) {
    this.#options = options;
    this.#sourced = options.sourced ?? new SourcedValues(options.values);
    this.#unsubscribe = options.heads.subscribe(({ heads }) => this.#onHeads(heads));
    const heads = options.heads.current();
    if (heads !== undefined) {
      this.#onHeads(heads);
    }
  }

  /** Changes when known values were dropped because of a node. A value that was requested before must not be added. */
  get generation(): number {
    return this.#generation;
  }

  /** Changes when all known values were dropped because of a node. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Whether the write sets of new blocks are read. */
  get isFollowing(): boolean {
    return this.#latest !== undefined && !this.#isPaused && !this.#isReleased;
  }

  /** Returns a promise that resolves when the block's write set is applied or given up. Undefined if nothing is awaited. */
  untilApplied(block: BlockId): Promise<void> | undefined {
    return this.#awaited.find(block)?.settled;
  }

  /** Adds a value that a node returned for a block's hash. */
  add(value: NodeValue, block: BlockId, generation: number): void {
    if (generation !== this.#generation || this.#isReleased) {
      return;
    }
    const awaited = this.#awaited.find(block);
    if (awaited !== undefined) {
      awaited.buffer(value);
      return;
    }
    try {
      this.#addNow(value, block);
    } catch (error) {
      this.#recover(error);
    }
  }

  /** Drops all values, by default because a node's state changed without a block. */
  forget(reason: DropReason = "nodeChanged"): void {
    if (this.#isReleased) {
      return;
    }
    this.#endEpoch();
    const latest = this.#options.heads.current()?.latest;
    if (latest !== undefined && this.isFollowing) {
      this.#restart(latest, reason);
    } else {
      this.#sourced.clear();
    }
  }

  /** Drops the values that are known on the word of this node alone. Its traces may lack writes: then that are all values. */
  forgetNode(node: string): void {
    if (this.#isReleased) {
      return;
    }
    if (this.#sourced.isCarriedBy(node)) {
      this.forget("difference");
      return;
    }
    // Values that were requested before, and answers to calls, may come from it.
    this.#generation++;
    this.#awaited.dropBuffered(node);
    this.#options.values.forgetNode(node);
  }

  /** Ends answers to calls, because a value that they read may be wrong. Values that were requested before are not added. */
  endAnswers(): void {
    this.#generation++;
  }

  /** Forgets a value, and learns it from no node until `settle`. */
  contest(key: StateKey, block: BlockId): void {
    if (!this.#isReleased) {
      this.#sourced.contest(key, block);
    }
  }

  settle(key: StateKey): void {
    if (!this.#isReleased) {
      this.#sourced.settle(key);
    }
  }

  /** Returns the nodes on whose word alone the write sets of these blocks are. */
  carriersOf(above: bigint, upTo: bigint): readonly string[] {
    return this.#sourced.carriersOf(above, upTo);
  }

  /**
   * Ends the following, and returns the values for another follower when no change of them is running.
   * They may still be read through this one.
   */
  async release(): Promise<SourcedValues> {
    this.#unsubscribe();
    this.#isEnded = true;
    this.#awaited.cancelAll();
    await this.#running;
    this.#isReleased = true;
    this.#generation++;
    return this.#sourced;
  }

  close(): void {
    if (this.#isReleased) {
      return;
    }
    this.#unsubscribe();
    this.#endEpoch();
    this.#awaited.cancelAll();
    this.#sourced.clear();
  }

  #onHeads(heads: Heads): void {
    const { latest } = heads;
    // Other changes are of safe and finalized.
    if (this.#isEnded || latest.hash === this.#latest?.hash) {
      return;
    }
    this.#latest = latest;
    const sources = this.#usableSources(latest);
    this.#options.onHead(sources.length > 0);
    if (sources.length === 0) {
      this.#isPaused = true;
      this.#awaited.cancelAll();
      return;
    }
    this.#extend(heads, sources);
    this.#isPaused = false;
    this.#running ??= this.#run();
  }

  #usableSources(latest: BlockId): readonly WriteSetSource[] {
    const { sources, cost } = this.#options;
    return sources.filter(
      (source) =>
        this.#sourced.isUsable(source, latest) &&
        (source.unitsPerBlock === 0 || cost.shouldFollow(source.unitsPerBlock, source.probation)),
    );
  }

  /** Awaits the blocks between the newest block that is known or awaited and the head. */
  #extend(heads: Heads, sources: readonly WriteSetSource[]): void {
    const { values, cost } = this.#options;
    const { latest } = heads;
    const maxMissing = Math.max(MIN_MISSING_BLOCKS, MAX_MISSING_MS / this.#options.heads.blockTimeMs);
    const isCanonical = isCanonicalIn(heads);
    this.#awaited.cancelOrphans(isCanonical);
    const tip = this.#awaited.last?.block ?? values.findNewest(isCanonical);
    if (tip === undefined) {
      this.#restart(latest, values.head && "reorganisation");
      return;
    }
    const missing = latest.number - tip.number;
    const [{ unitsPerBlock } = { unitsPerBlock: 0 }] = sources;
    if (this.#isPaused && missing > 1n && !cost.shouldCatchUp(Number(missing), unitsPerBlock)) {
      this.#restart(latest, "pause");
      return;
    }
    const blocks = linkedBlocks(heads, tip);
    if (blocks === undefined || Number(missing) + this.#awaited.length > maxMissing) {
      this.#restart(latest, "gap");
      return;
    }
    for (const [index, block] of blocks.entries()) {
      const parent = index === 0 ? heads.at(tip.number) : blocks[index - 1];
      const hasSameRules = parent !== undefined && this.#options.hasSameRules(parent, block);
      this.#awaited.push(new AwaitedBlock(block, hasSameRules ? sources : undefined));
    }
  }

  /** Applies awaited blocks, one after the other. Never rejects. */
  async #run(): Promise<void> {
    try {
      do {
        const next = await this.#prepareNext();
        if (next !== undefined) {
          await this.#applyNext(next);
        }
      } while (this.#awaited.first !== undefined || this.#findUndo() !== undefined);
    } catch (error) {
      this.#recover(error);
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
    while (this.#awaited.first !== undefined && values.isApplied(this.#awaited.first.block)) {
      await this.#finish(this.#awaited.first);
    }
    return this.#awaited.first;
  }

  /** Returns the number of the newest applied block that is canonical, if a newer one is not. */
  #findUndo(): bigint | undefined {
    const { heads, values } = this.#options;
    const current = heads.current();
    const ancestor = current && values.findNewest(isCanonicalIn(current));
    return ancestor !== undefined && ancestor.hash !== values.head?.hash ? ancestor.number : undefined;
  }

  async #applyNext(next: AwaitedBlock): Promise<void> {
    const { values, onRead } = this.#options;
    this.#awaited.readNext(onRead);
    const read = await next.read(onRead);
    if (read !== undefined) {
      this.#sourced.noteBlock(read.source, read.writeSet);
    }
    // A reorganisation removed the block, or all values were dropped.
    if (this.#awaited.first !== next || this.#findUndo() !== undefined) {
      return;
    }
    if (values.head?.hash !== next.block.parentHash) {
      this.#restart(next.block, "gap");
      return;
    }
    if (read === undefined) {
      await this.#beginAt(next, next.hasNewRules ? "fork" : "noWriteSet");
    } else if (!this.#sourced.canContinue(read.source, read.writeSet)) {
      await this.#beginAt(next, "probation");
    } else {
      await this.#apply(next, read);
    }
  }

  async #apply(next: AwaitedBlock, { source, writeSet }: SourcedWriteSet): Promise<void> {
    const { values, onApplied } = this.#options;
    const isApplied = await this.#change(this.#sourced.apply(source, writeSet));
    if (isApplied === undefined) {
      return;
    }
    if (!isApplied) {
      await this.#beginAt(next, "noRoom");
      return;
    }
    onApplied((performance.now() - next.startMs) / 1_000);
    await this.#finish(next);
    await this.#change(values.prune());
  }

  /** Runs a change of the values. Returns undefined if all values were dropped during it. */
  #change<T>(steps: Generator<unknown, T>): Promise<T | undefined> {
    const epoch = this.#epoch;
    return runSlicedWhile(steps, () => epoch === this.#epoch);
  }

  /** Ends the known values at this block, and begins with its own state. */
  #beginAt(awaited: AwaitedBlock, reason: DropReason): Promise<void> {
    this.#sourced.begin(awaited.block);
    this.#options.onDropped(reason);
    return this.#finish(awaited);
  }

  /** Adds the buffered values of a block. Reads of the block go on afterwards. */
  async #finish(awaited: AwaitedBlock): Promise<void> {
    this.#awaited.shift(awaited);
    try {
      await this.#change(this.#addBuffered(awaited));
    } finally {
      awaited.settle();
    }
  }

  *#addBuffered({ block, bufferedValues }: AwaitedBlock): Generator<void, void> {
    const epoch = this.#epoch;
    const generation = this.#generation;
    for (const buffered of bufferedValues) {
      const { value } = buffered;
      if (epoch !== this.#epoch || generation !== this.#generation) {
        return;
      }
      this.#addNow(buffered, block);
      for (let bytes = typeof value === "string" ? 0 : value.length; bytes >= 0; bytes -= BYTES_PER_STEP) {
        yield;
      }
    }
  }

  #addNow(value: NodeValue, block: BlockId): void {
    const difference = this.#sourced.add(value, block);
    if (difference !== undefined) {
      this.#options.onDifference(difference);
    }
  }

  #endEpoch(): void {
    this.#epoch++;
    this.#generation++;
  }

  /** Drops what is known and awaited after an unexpected error. Begins at the head, or ends after several errors. */
  #recover(error: unknown): void {
    const { heads, onHead, onDropped, onFault } = this.#options;
    const nowMs = performance.now();
    this.#faults.add(1, nowMs);
    this.#isEnded = this.#faults.total(nowMs) >= MAX_FAULTS;
    this.#endEpoch();
    this.#awaited.cancelAll();
    const latest = heads.current()?.latest;
    if (latest === undefined || this.#isEnded) {
      this.#isPaused = true;
      this.#sourced.clear();
    } else {
      this.#sourced.begin(latest);
    }
    try {
      onFault(error, this.#isEnded);
      onDropped("fault");
      if (this.#isEnded) {
        onHead(false);
      }
    } catch {
      // A listener failed, perhaps for the second time. The values are dropped already.
    }
  }

  /** Drops what is known and awaited, and begins at the head. */
  #restart(latest: BlockId, reason: DropReason | undefined): void {
    this.#endEpoch();
    this.#awaited.cancelAll();
    this.#sourced.begin(latest);
    if (reason !== undefined) {
      this.#options.onDropped(reason);
    }
  }
}
