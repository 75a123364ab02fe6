import { setTimeout as sleep } from "node:timers/promises";
import { type Heads, isCanonicalIn, type RingBlock } from "../core/heads.ts";
import { isNodeFault, NodeError } from "../core/node.ts";
import type { Log } from "../telemetry/telemetry.ts";
import { createSerialQueue } from "./serialQueue.ts";

export interface NewBlockReadsOptions {
  readonly current: () => Heads | undefined;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** Called with the number of blocks whose events are lost, because the heads go on without them. */
  onMissed(blocks: bigint): void;
}

const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 5_000;
/** Reads in flight, and those that are not delivered. After an outage there may be a thousand blocks to read. */
const MAX_IN_FLIGHT = 8;
/** A node that lags, or whose error has an unknown text, may answer the next read. */
const MAX_REFUSALS = 3;

/** Whether nodes refused this. An outage, a limit or an overload does not count, because it passes. */
export const isRefusedRead = (error: unknown): boolean =>
  error instanceof NodeError && (error.kind === "other" || !isNodeFault(error.kind));

/** Whether a read that failed is to be tried in another way: no node supports it, or nodes refused it repeatedly. */
export const mayReadOtherwise = (error: unknown, isRefused: boolean): boolean =>
  isRefused || (error instanceof NodeError && error.kind === "unsupportedMethod");

/** Reads what new blocks contain, MAX_IN_FLIGHT at a time, and delivers it in the order of the calls. */
export class NewBlockReads {
  readonly #options: NewBlockReadsOptions;
  readonly #waiting: (() => void)[] = [];
  /** Runs a task after all that was added before is delivered. */
  readonly inOrder: ReturnType<typeof createSerialQueue>;
  #inFlight = 0;

  constructor(options: NewBlockReadsOptions) {
    this.#options = options;
    this.inOrder = createSerialQueue((err) => options.log.error({ err }, "a new block could not be delivered"));
  }

  /**
   * Repeats a read until it succeeds, and delivers what it returns; undefined if the block is no longer canonical. After
   * MAX_REFUSALS, `fetch` is called with true: it may read in another way, or return what it has. The read starts at once, while
   * earlier blocks wait: blocks can arrive faster than a node responds.
   */
  add<T>(
    block: RingBlock,
    fetch: (isRefused: boolean) => Promise<T>,
    deliver: (content: T | undefined) => Promise<void> | void,
  ): void {
    const read = this.#read(block, fetch);
    this.inOrder(async () => {
      try {
        await deliver(await read);
      } finally {
        this.#inFlight--;
        this.#waiting.shift()?.();
      }
    });
  }

  async #read<T>(block: RingBlock, fetch: (isRefused: boolean) => Promise<T>): Promise<T | undefined> {
    if (this.#inFlight >= MAX_IN_FLIGHT) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    this.#inFlight++;
    return this.#fetch(block, fetch);
  }

  async #fetch<T>(block: RingBlock, fetch: (isRefused: boolean) => Promise<T>): Promise<T | undefined> {
    const { current, log, signal, onMissed } = this.#options;
    let refusals = 0;
    for (let retryMs = FIRST_RETRY_MS; ; retryMs = Math.min(retryMs * 2, MAX_RETRY_MS)) {
      const heads = current();
      if (signal.aborted || !isCanonicalIn(heads, block)) {
        if (heads !== undefined && block.number < heads.oldest) {
          onMissed(1n);
        }
        return undefined;
      }
      try {
        return await fetch(refusals >= MAX_REFUSALS);
      } catch (err) {
        refusals += isRefusedRead(err) ? 1 : 0;
        log.debug({ err, number: block.number.toString() }, "retrying the read of a new block");
      }
      // An abort ends the wait early; the loop then returns.
      await sleep(retryMs, undefined, { signal }).catch(() => undefined);
    }
  }
}
