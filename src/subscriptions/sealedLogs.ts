import type { Caller } from "../core/context.ts";
import type { HeadChange, RingBlock } from "../core/heads.ts";
import type { Hash } from "../ethereum/hex.ts";
import { parseLogs, type SubscribedLog } from "./filterIndex.ts";
import { NewBlockReads, type NewBlockReadsOptions } from "./newBlockReads.ts";
import type { EventCounter } from "./subscriber.ts";

/** Reads through the cache, as for any client. Returns the JSON text of the result. `caller`: the client that pays for it. */
export type RpcReader = (method: string, params: readonly unknown[], caller?: Caller) => Promise<Uint8Array>;

/** A sealed block and its logs, by log index. */
export interface SealedBlockLogs {
  readonly block: RingBlock;
  readonly logs: readonly SubscribedLog[];
  /** Number of the event that added the block (see EventCounter). */
  readonly event: number;
}

export interface SealedLogsOptions extends NewBlockReadsOptions {
  readonly read: RpcReader;
  readonly events: EventCounter;
  /** Whether the bloom of the heads shows that a block has no logs. Otherwise each block is read. */
  readonly trustsBloom: boolean;
  /** Whether there is a subscription. Without one, logs are not requested. */
  isWanted(): boolean;
  /** Called for each block of the new branch, oldest first. Resolves when its events are sent. */
  onAdded(block: SealedBlockLogs): Promise<void>;
  /** Called if an added block is no longer canonical. */
  onRemoved(block: SealedBlockLogs): void;
}

interface StoredLogs {
  readonly text: Uint8Array;
  readonly event: number;
}

/** A reorganisation can remove logs of up to this many blocks and bytes. */
const MAX_STORED_BLOCKS = 128;
const MAX_STORED_BYTES = 64 * 1024 * 1024;
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

/**
 * Creates the listener that reads the logs of each new head, once for all subscriptions.
 * Blocks are delivered in the order of the chain. No canonical block is left out.
 */
export const createSealedLogs = (options: SealedLogsOptions): ((change: HeadChange) => void) => {
  const { events } = options;
  const store = new LogStore();
  const reads = new NewBlockReads(options);

  const readLogs = async ({ hash, logsBloom }: RingBlock): Promise<Uint8Array> =>
    options.trustsBloom && logsBloom.every((byte) => byte === 0)
      ? NO_LOGS
      : options.read("eth_getLogs", [{ blockHash: hash }]);

  const add = async (block: RingBlock, text: Uint8Array | undefined, event: number): Promise<void> => {
    if (text !== undefined) {
      store.set(block.hash, { text, event });
      await options.onAdded({ block, logs: parseLogs(text), event });
    }
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
      reads.inOrder(() => remove(block));
    }
    if (!options.isWanted()) {
      return;
    }
    for (const block of to) {
      reads.add(
        block,
        () => readLogs(block),
        (text) => add(block, text, event),
      );
    }
  };
};
