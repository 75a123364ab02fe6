import type { Body, PendingChange, PendingExtension } from "../core/view.ts";
import type { LogIndex } from "../ethereum/logIndex.ts";
import type { EventCounter } from "./eventCounter.ts";
import { createNotification } from "./notification.ts";
import type { SealedBlockLogs } from "./sealedLogs.ts";
import { logKey, parseLogs, type SubscribedLog } from "./subscribedLog.ts";
import { broadcast, type Subscription } from "./subscriber.ts";

export interface PendingLogsOptions {
  readonly index: LogIndex<Subscription>;
  readonly events: EventCounter;
  /** Returns `since` of the newest subscription. */
  newest(): number;
  onDelivered(count: number): void;
}

/**
 * Sends each log once, as early as possible: when it is pre-confirmed, else with the sealed block.
 * The sealed block has new logs in native mode, after a gap in the feed, and for subscriptions that began in between.
 * A log that was sent and is not in the sealed block is sent again with `removed: true`.
 */
export interface PendingLogs {
  onPending(change: PendingChange): void;
  /** Takes all logs of a node's own pending block. */
  onNodePending(logs: readonly SubscribedLog[]): void;
  onSealed(block: SealedBlockLogs): void;
  onUnsealed(block: SealedBlockLogs): void;
}

/** A log that was sent to all subscriptions older than `event`. */
interface SentLog {
  readonly event: number;
  /** Undefined once its block is sealed: then the block's own logs are used. */
  readonly log: SubscribedLog | undefined;
}

/** A reorganisation of more blocks removes no logs. */
const MAX_BLOCKS = 128n;

const OPEN = Buffer.from("[");
const CLOSE = Buffer.from("]");

const logsOf = ({ block, fromTransaction, toTransaction }: PendingExtension): readonly SubscribedLog[] =>
  block
    .logs(fromTransaction)
    .filter(({ transactionIndex }) => transactionIndex < toTransaction)
    .map((log) => ({
      address: log.address,
      topics: log.topics,
      number: block.number,
      key: logKey(log.transactionHash, log.logIndex),
      body: (removed) => block.formatLog(log, removed),
    }));

/** Creates the delivery of `pendingLogs` subscriptions. */
export const createPendingLogs = ({ index, events, newest, onDelivered }: PendingLogsOptions): PendingLogs => {
  /** Sent logs by block number and log key. */
  const sentLogs = new Map<bigint, Map<string, SentLog>>();

  const sentLogsOf = (number: bigint): Map<string, SentLog> => {
    const ofBlock = sentLogs.get(number) ?? new Map<string, SentLog>();
    sentLogs.set(number, ofBlock);
    return ofBlock;
  };

  const send = (log: SubscribedLog, removed: boolean, isReceiver: (since: number) => boolean): void => {
    const receivers = [...index.match(log)].filter(({ since }) => isReceiver(since));
    if (receivers.length > 0) {
      onDelivered(broadcast(createNotification(log.body(removed)), receivers));
    }
  };

  const sendNew = (logs: readonly SubscribedLog[], event: number): void => {
    for (const log of logs) {
      const ofBlock = sentLogsOf(log.number);
      if (ofBlock.has(log.key)) {
        continue;
      }
      ofBlock.set(log.key, { event, log });
      send(log, false, (since) => since < event);
    }
  };

  /** Sends the log with `removed: true` to the subscriptions that got it. `sealed` is the log of the sealed block. */
  const sendRemoved = (number: bigint, key: string, sealed?: SubscribedLog): void => {
    const { event = 0, log = sealed } = sentLogs.get(number)?.get(key) ?? {};
    sentLogs.get(number)?.delete(key);
    if (log) {
      send(log, true, (since) => since < event);
    }
  };

  const sendRemovedBodies = (bodies: readonly Body[]): void => {
    for (const { number, key } of bodies.flatMap((body) => parseLogs(Buffer.concat([OPEN, body, CLOSE])))) {
      sendRemoved(number, key);
    }
  };

  return {
    onPending: ({ removed, extended }) => {
      if (index.size === 0) {
        return;
      }
      const event = events.next();
      sendRemovedBodies(removed);
      for (const extension of extended) {
        sendNew(logsOf(extension), event);
      }
    },
    // A failing node may leave a log out. The sealed block decides which logs are removed.
    onNodePending: (logs) => sendNew(logs, events.next()),
    onSealed: ({ block: { number }, logs, event }) => {
      const ofBlock = sentLogsOf(number);
      const sealedKeys = new Set(logs.map(({ key }) => key));
      for (const key of [...ofBlock.keys()].filter((each) => !sealedKeys.has(each)).reverse()) {
        sendRemoved(number, key);
      }
      for (const log of logs) {
        const sentEvent = ofBlock.get(log.key)?.event ?? 0;
        if (newest() >= sentEvent) {
          send(log, false, (since) => since >= sentEvent && since < event);
        }
        ofBlock.set(log.key, { event: Math.max(sentEvent, event), log: undefined });
      }
      for (const old of sentLogs.keys()) {
        if (old < number - MAX_BLOCKS) {
          sentLogs.delete(old);
        }
      }
    },
    onUnsealed: ({ block: { number }, logs }) => {
      for (const log of logs.toReversed()) {
        sendRemoved(number, log.key, log);
      }
    },
  };
};
