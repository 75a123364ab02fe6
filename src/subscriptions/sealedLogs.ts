import { setTimeout as sleep } from "node:timers/promises";
import type { HeadChange, Heads, RingBlock } from "../core/heads.ts";
import type { Hash } from "../ethereum/hex.ts";
import type { Log } from "../telemetry/telemetry.ts";
import type { EventCounter } from "./eventCounter.ts";
import { createSerialQueue } from "./serialQueue.ts";
import { parseLogs, type SubscribedLog } from "./subscribedLog.ts";

/** The text of one read's result, by way of the cache like anybody's. */
export type Ask = (method: string, params: readonly unknown[]) => Promise<Uint8Array>;

/** A sealed block and its logs, in order. */
export interface SealedBlockLogs {
  readonly block: RingBlock;
  readonly logs: readonly SubscribedLog[];
  /** The event that it came with. */
  readonly event: number;
}

export interface SealedLogsOptions {
  readonly current: () => Heads | undefined;
  readonly ask: Ask;
  readonly events: EventCounter;
  /** Somebody listens; else a block's logs are not asked for. */
  isWanted(): boolean;
  onAdded(block: SealedBlockLogs): void;
  /** It is not canonical any more. Told only of what was added. */
  onRemoved(block: SealedBlockLogs): void;
  readonly log: Log;
  readonly signal: AbortSignal;
}

interface Kept {
  readonly text: Uint8Array;
  readonly event: number;
}

/** What a reorganisation can take back: so many blocks, and so many bytes of them. */
const MAX_KEPT_BLOCKS = 128;
const MAX_KEPT_BYTES = 64 * 1024 * 1024;
const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 5_000;
/** Blocks that are asked for side by side: after a break there may be a thousand. */
const MAX_ASKED = 8;
const NO_LOGS = Buffer.from("[]");

/** The logs of each new head, asked for once for all subscriptions, in the order of the chain; none is left out while it is canonical. */
export const createSealedLogs = (options: SealedLogsOptions): ((change: HeadChange) => void) => {
  const { current, ask, events, log, signal } = options;
  const inOrder = createSerialQueue((err) => log.error({ err }, "logs of a block could not be delivered"));
  const kept = new Map<Hash, Kept>();
  const waiting: (() => void)[] = [];
  let asked = 0;
  let keptBytes = 0;

  const forget = (hash: Hash): Kept | undefined => {
    const entry = kept.get(hash);
    if (entry !== undefined) keptBytes -= entry.text.length;
    kept.delete(hash);
    return entry;
  };

  const keep = (hash: Hash, entry: Kept): void => {
    kept.set(hash, entry);
    keptBytes += entry.text.length;
    for (const oldest of kept.keys()) {
      if (kept.size <= MAX_KEPT_BLOCKS && keptBytes <= MAX_KEPT_BYTES) return;
      forget(oldest);
    }
  };

  /** Asks until it is answered; undefined when the block is no longer canonical. */
  const fetch = async ({ number, hash, logsBloom }: RingBlock): Promise<Uint8Array | undefined> => {
    if (logsBloom.every((byte) => byte === 0)) return NO_LOGS;
    for (let retryMs = FIRST_RETRY_MS; ; retryMs = Math.min(retryMs * 2, MAX_RETRY_MS)) {
      if (signal.aborted || current()?.at(number)?.hash !== hash) return undefined;
      try {
        return await ask("eth_getLogs", [{ blockHash: hash }]);
      } catch (err) {
        log.debug({ err, number: number.toString() }, "logs of a new block are asked for again");
      }
      await sleep(retryMs, undefined, { signal }).catch(() => {});
    }
  };

  /** In the order of the chain, so many at a time. */
  const inTurn = async (block: RingBlock): Promise<Uint8Array | undefined> => {
    if (asked >= MAX_ASKED) await new Promise<void>((resolve) => waiting.push(resolve));
    asked++;
    try {
      return await fetch(block);
    } finally {
      asked--;
      waiting.shift()?.();
    }
  };

  const add = (block: RingBlock, text: Uint8Array | undefined, event: number): void => {
    if (text === undefined) return;
    keep(block.hash, { text, event });
    options.onAdded({ block, logs: parseLogs(text), event });
  };

  const remove = (block: RingBlock): void => {
    const entry = forget(block.hash);
    if (entry) options.onRemoved({ block, logs: parseLogs(entry.text), event: entry.event });
  };

  return ({ from, to }) => {
    const event = events.next();
    for (const block of from.toReversed()) inOrder(() => remove(block));
    if (!options.isWanted()) return;
    for (const block of to) {
      // Asked for at once, also while the one before is awaited: blocks may come faster than a node answers.
      const text = inTurn(block);
      inOrder(async () => add(block, await text, event));
    }
  };
};
