import { type BlockId, type FollowedHeads, type Heads, isCanonicalIn, type RingBlock } from "../core/heads.ts";
import { SlidingSum } from "../limits/slidingSum.ts";
import type { DropReason } from "../telemetry/stateMetrics.ts";
import { AwaitedBlock, linkedBlocks, type NodeValue } from "./awaitedBlocks.ts";
import { BlockQueue, type BlockQueueOptions } from "./blockQueue.ts";
import type { StateCost } from "./cost.ts";
import type { StateKey } from "./stateKey.ts";
import { readableBlocks } from "./store/followedBlocks.ts";
import type { WriteSetSource } from "./writeSet.ts";

export interface StateFollowerOptions extends Omit<BlockQueueOptions, "heads" | "onError"> {
  readonly heads: FollowedHeads & { readonly blockTimeMs: number };
  /** In the order in which they are asked. */
  readonly sources: readonly WriteSetSource[];
  readonly cost: Pick<StateCost, "shouldFollow" | "shouldCatchUp">;
  /** Whether the same rules apply to a block and to its parent. */
  hasSameRules(parent: RingBlock, block: RingBlock): boolean;
}

/** What nodes returned for a block's hash. */
export interface ReadValues extends Pick<NodeValue, "node" | "grade"> {
  /** 64 digits of hex, of a code its hash. */
  readonly values: Iterable<readonly [StateKey, string]>;
  /** By their hash: 64 digits of hex. */
  readonly codes?: Iterable<readonly [string, Uint8Array]>;
  /** See `RpcResponse`. */
  readonly isAgreed?: boolean | undefined;
}

type EnterValues = (read: ReadValues, block: BlockId) => void;

const NO_CODES: ReadonlyMap<string, Uint8Array> = new Map();

/** More missing blocks are a gap: reading their write sets takes longer than learning the values again. */
const MAX_MISSING_MS = 120_000;
/** On slow chains, more blocks than that are read. */
const MIN_MISSING_BLOCKS = 128;
/** Returns the number of missing blocks above which known values end. */
export const maxMissingBlocks = (blockTimeMs: number): number =>
  Math.max(MIN_MISSING_BLOCKS, MAX_MISSING_MS / blockTimeMs);

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
  readonly #queue: BlockQueue;
  #latest: BlockId | undefined;
  #isReleased = false;
  #isPaused = false;
  #isEnded = false;
  readonly #faults = new SlidingSum(FAULT_PERIOD_MS);

  constructor(options: StateFollowerOptions) {
    this.#options = options;
    this.#queue = new BlockQueue({
      ...options,
      onDropped: (reason) => this.#reportDrop(reason),
      onError: (error) => this.#recover(error),
    });
    this.#unsubscribe = options.heads.subscribe(({ heads }) => this.#onHeads(heads));
    const heads = options.heads.current();
    if (heads !== undefined) {
      this.#onHeads(heads);
    }
  }

  /** Changes when known values were dropped because of a node. A value that was requested before must not be added. */
  get generation(): number {
    return this.#queue.generation;
  }

  /** Whether the write sets of new blocks are read. */
  get isFollowing(): boolean {
    return this.#latest !== undefined && !this.#isPaused && !this.#isReleased;
  }

  /** Returns a promise that resolves when the block's write set is applied or given up. Undefined if nothing is awaited. */
  untilApplied(block: BlockId): Promise<void> | undefined {
    return this.#queue.awaited.find(block)?.settled;
  }

  /** Begins a read of nodes. Returns the function that makes its values known, unless a second origin is required and lacks. */
  beginRead(): EnterValues {
    const { generation } = this;
    return ({ values, codes = NO_CODES, isAgreed, ...origin }, block) => {
      if (isAgreed === false) {
        return;
      }
      for (const [hash, code] of codes) {
        this.#options.values.storeCode(code, hash);
      }
      for (const [key, value] of values) {
        this.#add({ key, value, ...origin }, block, generation);
      }
    };
  }

  #add(value: NodeValue, block: BlockId, generation: number): void {
    if (generation !== this.generation || this.#isReleased) {
      return;
    }
    const awaited = this.#queue.awaited.find(block);
    if (awaited !== undefined) {
      awaited.buffer(value);
      return;
    }
    try {
      this.#queue.addNow(value, block);
    } catch (error) {
      this.#recover(error);
    }
  }

  /**
   * Makes the state at a canonical block known, to which older values can be added. Nothing changes if the block is readable.
   * Returns false if other blocks are followed.
   */
  beginAt(block: BlockId): boolean {
    const { values, heads } = this.#options;
    if (this.#isReleased || this.#isEnded) {
      return false;
    }
    if (!values.isApplied(block) && (this.#isPaused || values.head === undefined)) {
      this.#queue.restart(block, values.head && "gap");
      this.#isPaused = false;
      this.#latest = undefined;
      const current = heads.current();
      if (current !== undefined) {
        this.#onHeads(current);
      }
    }
    return values.isApplied(block);
  }

  /** Drops all values, by default because a node's state changed without a block. */
  forget(reason: DropReason = "nodeChanged"): void {
    if (this.#isReleased) {
      return;
    }
    this.#queue.endGeneration();
    const { values, heads } = this.#options;
    const latest = heads.current()?.latest;
    if (latest !== undefined && this.isFollowing) {
      this.#queue.restart(latest, reason);
    } else {
      values.clear();
      // Rows in the data folder may have what is wrong.
      this.#reportDrop(reason);
    }
  }

  /**
   * Ends the following. Another follower may have the values once this resolves: no change of them is running then.
   * They may still be read through this one.
   */
  async release(): Promise<void> {
    this.#unsubscribe();
    this.#isEnded = true;
    this.#queue.awaited.cancelAll();
    await this.#queue.idle;
    this.#isReleased = true;
    this.#queue.endGeneration();
  }

  close(): void {
    if (this.#isReleased) {
      return;
    }
    this.#unsubscribe();
    this.#queue.endGeneration();
    this.#queue.awaited.cancelAll();
    this.#options.values.clear();
  }

  #onHeads(heads: Heads): void {
    const { latest } = heads;
    // Other changes are of safe and finalized.
    if (this.#isEnded || latest.hash === this.#latest?.hash) {
      return;
    }
    this.#latest = latest;
    this.#options.values.maxReadable = readableBlocks(this.#options.heads.blockTimeMs);
    const sources = this.#usableSources();
    this.#measureFollowing(sources.length > 0);
    if (sources.length === 0) {
      this.#isPaused = true;
      this.#queue.awaited.cancelAll();
      return;
    }
    this.#extend(heads, sources);
    this.#isPaused = false;
    this.#queue.start();
  }

  #usableSources(): readonly WriteSetSource[] {
    const { sources, cost } = this.#options;
    return sources.filter(({ isSuspended, unitsPerBlock }) => isSuspended !== true && cost.shouldFollow(unitsPerBlock));
  }

  /** Awaits the blocks between the newest block that is known or awaited and the head. */
  #extend(heads: Heads, sources: readonly WriteSetSource[]): void {
    const { values, cost } = this.#options;
    const { latest } = heads;
    const maxMissing = maxMissingBlocks(this.#options.heads.blockTimeMs);
    const isCanonical = (block: BlockId): boolean => isCanonicalIn(heads, block);
    this.#queue.awaited.cancelOrphans(isCanonical);
    const tip = this.#queue.awaited.last?.block ?? values.findNewest(isCanonical);
    if (tip === undefined) {
      this.#queue.restart(latest, values.head && "gap");
      return;
    }
    const missing = latest.number - tip.number;
    const [{ unitsPerBlock } = { unitsPerBlock: 0 }] = sources;
    const isTooExpensive = this.#isPaused && missing > 1n && !cost.shouldCatchUp(Number(missing), unitsPerBlock);
    const blocks = linkedBlocks(heads, tip);
    if (isTooExpensive || blocks === undefined || Number(missing) + this.#queue.awaited.length > maxMissing) {
      this.#queue.restart(latest, "gap");
      return;
    }
    for (const [index, block] of blocks.entries()) {
      const parent = index === 0 ? heads.at(tip.number) : blocks[index - 1];
      const hasSameRules = parent !== undefined && this.#options.hasSameRules(parent, block);
      this.#queue.awaited.push(new AwaitedBlock(block, hasSameRules ? sources : undefined));
    }
  }

  /** Drops what is known and awaited after an unexpected error. Begins at the head, or ends after several errors. */
  #recover(error: unknown): void {
    const { chain, heads, telemetry } = this.#options;
    const nowMs = performance.now();
    this.#faults.add(1, nowMs);
    this.#isEnded = this.#faults.total(nowMs) >= MAX_FAULTS;
    this.#queue.endGeneration();
    this.#queue.awaited.cancelAll();
    const latest = heads.current()?.latest;
    if (latest === undefined || this.#isEnded) {
      this.#isPaused = true;
      this.#options.values.clear();
    } else {
      this.#options.values.begin(latest);
    }
    try {
      telemetry.log.error(
        { err: error, chain },
        this.#isEnded ? "state is not followed any more, because it failed three times" : "following the state failed",
      );
      this.#reportDrop("fault");
      if (this.#isEnded) {
        this.#measureFollowing(false);
      }
    } catch {
      // A listener failed, perhaps for the second time. The values are dropped already.
    }
  }

  #reportDrop(reason: DropReason): void {
    const { chain, telemetry, onDropped } = this.#options;
    telemetry.log.debug({ chain, reason }, "known state values are dropped");
    telemetry.metrics.stateDrops.inc({ chain, reason });
    this.#measureValues();
    onDropped(reason);
  }

  #measureFollowing(isFollowing: boolean): void {
    const { chain, telemetry } = this.#options;
    telemetry.metrics.stateFollowing.set({ chain }, isFollowing ? 1 : 0);
    this.#measureValues();
  }

  #measureValues(): void {
    const { chain, values, telemetry } = this.#options;
    telemetry.metrics.stateUnchecked.set({ chain }, values.isChecked ? 0 : 1);
    telemetry.metrics.stateValues.set({ chain }, values.size);
    telemetry.metrics.stateBytes.set({ chain }, values.bytes);
  }
}
