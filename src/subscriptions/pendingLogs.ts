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
  /** `since` of the subscription that began last. */
  newest(): number;
  onDelivered(count: number): void;
}

/**
 * Each log once, as early as it is known: pre-confirmed, or with the sealed block where it was not (native mode, a gap in the feed, a
 * subscription that began in between). What was told and is not in the sealed block is taken back.
 */
export interface PendingLogs {
  onPending(change: PendingChange): void;
  /** All logs of a node's own pending block so far. */
  onNodePending(logs: readonly SubscribedLog[]): void;
  onSealed(block: SealedBlockLogs): void;
  onUnsealed(block: SealedBlockLogs): void;
}

/** A log that subscriptions older than `event` have been told. */
interface Told {
  readonly event: number;
  /** Until its block is sealed: from then on the block's own logs are at hand. */
  readonly log: SubscribedLog | undefined;
}

/** A reorganisation of more blocks than this takes nothing back. */
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

export const createPendingLogs = ({ index, events, newest, onDelivered }: PendingLogsOptions): PendingLogs => {
  const told = new Map<bigint, Map<string, Told>>();

  const toldOf = (number: bigint): Map<string, Told> => {
    const known = told.get(number) ?? new Map<string, Told>();
    told.set(number, known);
    return known;
  };

  const send = (log: SubscribedLog, removed: boolean, isMeant: (since: number) => boolean): void => {
    const receivers = [...index.match(log)].filter(({ since }) => isMeant(since));
    if (receivers.length > 0) onDelivered(broadcast(createNotification(log.body(removed)), receivers));
  };

  const takeBack = (number: bigint, key: string, sealed?: SubscribedLog): void => {
    const { event = 0, log = sealed } = told.get(number)?.get(key) ?? {};
    told.get(number)?.delete(key);
    if (log) send(log, true, (since) => since < event);
  };

  const tell = (logs: readonly SubscribedLog[], event: number): void => {
    for (const log of logs) {
      const known = toldOf(log.number);
      if (known.has(log.key)) continue;
      known.set(log.key, { event, log });
      send(log, false, (since) => since < event);
    }
  };

  const takeBackBodies = (bodies: readonly Body[]): void => {
    for (const { number, key } of bodies.flatMap((body) => parseLogs(Buffer.concat([OPEN, body, CLOSE])))) {
      takeBack(number, key);
    }
  };

  return {
    onPending: ({ removed, extended }) => {
      if (index.size === 0) return;
      const event = events.next();
      takeBackBodies(removed);
      for (const extension of extended) tell(logsOf(extension), event);
    },
    // A log that is no longer there may have been left out by a node that failed: the sealed block will tell.
    onNodePending: (logs) => tell(logs, events.next()),
    onSealed: ({ block: { number }, logs, event }) => {
      const known = toldOf(number);
      const sealed = new Set(logs.map(({ key }) => key));
      for (const key of [...known.keys()].filter((each) => !sealed.has(each)).reverse()) takeBack(number, key);
      for (const log of logs) {
        const before = known.get(log.key)?.event ?? 0;
        if (newest() >= before) send(log, false, (since) => since >= before && since < event);
        known.set(log.key, { event: Math.max(before, event), log: undefined });
      }
      for (const old of told.keys()) if (old < number - MAX_BLOCKS) told.delete(old);
    },
    onUnsealed: ({ block: { number }, logs }) => {
      for (const log of logs.toReversed()) takeBack(number, log.key, log);
    },
  };
};
