import { setTimeout as sleep } from "node:timers/promises";
import type { HeadChange, Heads, RingBlock } from "../core/heads.ts";
import type { Hash } from "../ethereum/hex.ts";
import type { Log } from "../telemetry/telemetry.ts";
import { parseLogs, type SubscribedLog } from "./filterIndex.ts";
import { createSerialQueue } from "./serialQueue.ts";
import type { EventCounter } from "./subscriber.ts";

/** Reads through the cache, as for any client. Returns the JSON text of the result. */
export type RpcReader = (method: string, params: readonly unknown[]) => Promise<Uint8Array>;

/** A sealed block and its logs, by log index. */
export interface SealedBlockLogs {
  readonly block: RingBlock;
  readonly logs: readonly SubscribedLog[];
  /** Number of the event that added the block (see EventCounter). */
  readonly event: number;
}

export interface SealedLogsOptions {
  readonly current: () => Heads | undefined;
  readonly read: RpcReader;
  readonly events: EventCounter;
  /** Whether there is a subscription. Without one, logs are not requested. */
  isWanted(): boolean;
  /** Called for each block of the new branch, oldest first. */
  onAdded(block: SealedBlockLogs): void;
  /** Called if an added block is no longer canonical. */
  onRemoved(block: SealedBlockLogs): void;
  readonly log: Log;
  readonly signal: AbortSignal;
}

interface StoredLogs {
  readonly text: Uint8Array;
  readonly event: number;
}

/** A reorganisation can remove logs of up to this many blocks and bytes. */
const MAX_STORED_BLOCKS = 128;
const MAX_STORED_BYTES = 64 * 1024 * 1024;
const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 5_000;
/** Requests in flight. After an outage there may be a thousand blocks to read. */
const MAX_IN_FLIGHT = 8;
const NO_LOGS = Buffer.from("[]");

/** The newest blocks' logs by block hash. Evicts the oldest above the limits. */
class LogStore {
  readonly #byHash = new Map<Hash, StoredLogs>();
  #bytes = 0;

  set(hash: Hash, logs: StoredLogs): void {
    this.#byHash.set(hash, logs);
    this.#bytes += logs.text.length;
    for (const oldest of this.#byHash.keys()) {
      if (this.#byHash.size <= MAX_STORED_BLOCKS && this.#bytes <= MAX_STORED_BYTES) {
        return;
      }
      this.remove(oldest);
    }
  }

  /** Removes and returns the logs of a block. */
  remove(hash: Hash): StoredLogs | undefined {
    const logs = this.#byHash.get(hash);
    if (logs !== undefined) {
      this.#bytes -= logs.text.length;
    }
    this.#byHash.delete(hash);
    return logs;
  }
}

/** Reads the logs of new blocks: at most MAX_IN_FLIGHT requests at a time, in the order of the calls. */
class LogReader {
  readonly #options: Pick<SealedLogsOptions, "current" | "read" | "log" | "signal">;
  readonly #waiting: (() => void)[] = [];
  #inFlight = 0;

  constructor(options: Pick<SealedLogsOptions, "current" | "read" | "log" | "signal">) {
    this.#options = options;
  }

  /** Resolves with the JSON text of the logs, or undefined if the block is no longer canonical. */
  async read(block: RingBlock): Promise<Uint8Array | undefined> {
    if (this.#inFlight >= MAX_IN_FLIGHT) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    this.#inFlight++;
    try {
      return await this.#fetch(block);
    } finally {
      this.#inFlight--;
      this.#waiting.shift()?.();
    }
  }

  /** Retries until a response arrives, or the block is no longer canonical. */
  async #fetch({ number, hash, logsBloom }: RingBlock): Promise<Uint8Array | undefined> {
    const { current, read, log, signal } = this.#options;
    if (logsBloom.every((byte) => byte === 0)) {
      return NO_LOGS;
    }
    for (let retryMs = FIRST_RETRY_MS; ; retryMs = Math.min(retryMs * 2, MAX_RETRY_MS)) {
      if (signal.aborted || current()?.at(number)?.hash !== hash) {
        return undefined;
      }
      try {
        return await read("eth_getLogs", [{ blockHash: hash }]);
      } catch (err) {
        log.debug({ err, number: number.toString() }, "retrying the logs of a new block");
      }
      // An abort ends the wait early; the loop then returns.
      await sleep(retryMs, undefined, { signal }).catch(() => undefined);
    }
  }
}

/**
 * Creates the listener that reads the logs of each new head, once for all subscriptions.
 * Blocks are delivered in the order of the chain. No canonical block is left out.
 */
export const createSealedLogs = (options: SealedLogsOptions): ((change: HeadChange) => void) => {
  const { events, log } = options;
  const inOrder = createSerialQueue((err) => log.error({ err }, "the logs of a block could not be delivered"));
  const store = new LogStore();
  const reader = new LogReader(options);

  const add = (block: RingBlock, text: Uint8Array | undefined, event: number): void => {
    if (text === undefined) {
      return;
    }
    store.set(block.hash, { text, event });
    options.onAdded({ block, logs: parseLogs(text), event });
  };

  const remove = (block: RingBlock): void => {
    const stored = store.remove(block.hash);
    if (stored) {
      options.onRemoved({ block, logs: parseLogs(stored.text), event: stored.event });
    }
  };

  return ({ from, to }) => {
    const event = events.next();
    for (const block of from.toReversed()) {
      inOrder(() => remove(block));
    }
    if (!options.isWanted()) {
      return;
    }
    for (const block of to) {
      // Start the request at once, while earlier blocks wait: blocks can arrive faster than a node responds.
      const text = reader.read(block);
      inOrder(async () => add(block, await text, event));
    }
  };
};
