import { setTimeout as sleep } from "node:timers/promises";
import type { Heads, RingBlock } from "../core/heads.ts";
import type { Log } from "../telemetry/telemetry.ts";

export interface NewBlockReadsOptions {
  readonly current: () => Heads | undefined;
  readonly log: Log;
  readonly signal: AbortSignal;
}

const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 5_000;
/** Requests in flight. After an outage there may be a thousand blocks to read. */
const MAX_IN_FLIGHT = 8;

/** Reads what new blocks contain: at most MAX_IN_FLIGHT reads at a time, in the order of the calls. */
export class NewBlockReads {
  readonly #options: NewBlockReadsOptions;
  readonly #waiting: (() => void)[] = [];
  #inFlight = 0;

  constructor(options: NewBlockReadsOptions) {
    this.#options = options;
  }

  /** Repeats a read until it succeeds. Resolves with undefined if the block is no longer canonical. */
  async read<T>(block: RingBlock, fetch: () => Promise<T>): Promise<T | undefined> {
    if (this.#inFlight >= MAX_IN_FLIGHT) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    this.#inFlight++;
    try {
      return await this.#fetch(block, fetch);
    } finally {
      this.#inFlight--;
      this.#waiting.shift()?.();
    }
  }

  async #fetch<T>({ number, hash }: RingBlock, fetch: () => Promise<T>): Promise<T | undefined> {
    const { current, log, signal } = this.#options;
    for (let retryMs = FIRST_RETRY_MS; ; retryMs = Math.min(retryMs * 2, MAX_RETRY_MS)) {
      if (signal.aborted || current()?.at(number)?.hash !== hash) {
        return undefined;
      }
      try {
        return await fetch();
      } catch (err) {
        log.debug({ err, number: number.toString() }, "retrying the read of a new block");
      }
      // An abort ends the wait early; the loop then returns.
      await sleep(retryMs, undefined, { signal }).catch(() => undefined);
    }
  }
}
