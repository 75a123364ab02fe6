import type { HeadChange, Heads } from "../core/heads.ts";
import type { PendingChange } from "../core/view.ts";
import type { LogFilter } from "../ethereum/logFilter.ts";
import { createLogIndex, type LogIndex } from "../ethereum/logIndex.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { createEventCounter } from "./eventCounter.ts";
import { createFlashblocks } from "./flashblocks.ts";
import { createNewHeads } from "./newHeadsSubscription.ts";
import { createNodePending, type NodePendingSource } from "./nodePending.ts";
import { createNotification } from "./notification.ts";
import { createPendingLogs } from "./pendingLogs.ts";
import { createPoolEvents, type PoolEventsOptions, type Registration } from "./poolEvents.ts";
import { type Ask, createSealedLogs, type SealedBlockLogs } from "./sealedLogs.ts";
import { broadcast, type Subscription } from "./subscriber.ts";
import type { SubscriptionKind, Wanted } from "./subscriptionKinds.ts";
import { createSyncing } from "./syncing.ts";

export interface EventHubOptions {
  /** Label of metrics. */
  readonly chain: string;
  readonly heads: {
    current(): Heads | undefined;
    subscribe(listener: (change: HeadChange) => void): () => void;
  };
  /** Absent where the chain has no pending room: then what is pre-confirmed is told when it is sealed. */
  readonly pending?: { subscribe(listener: (change: PendingChange) => void): () => void };
  /** Absent where no node is asked at `pending`. */
  readonly nodePending?: NodePendingSource;
  readonly pool: PoolEventsOptions["source"];
  readonly ask: Ask;
  /** So many blocks were not read: whoever waits for events must know. */
  onMissed(blocks: bigint): void;
  readonly telemetry: Pick<Telemetry, "log" | "metrics">;
}

/** What happens on one chain, told to whoever subscribed to it: one source for any number of subscriptions. */
export interface EventHub {
  /** The newest event; a subscription is told of those after it. */
  readonly current: number;
  register(wanted: Wanted): Promise<Registration>;
  close(): void;
}

/** A place in a set or an index, which is never refused. */
const placeIn = (
  add: (subscription: Subscription) => void,
  remove: (subscription: Subscription) => void,
): Registration => {
  let own: Subscription | undefined;
  return {
    begin: (subscription) => {
      own = subscription;
      add(subscription);
    },
    end: () => {
      if (own) remove(own);
    },
  };
};

const inSet = (set: Set<Subscription>): Registration =>
  placeIn(
    (subscription) => set.add(subscription),
    (subscription) => set.delete(subscription),
  );

export const createEventHub = (options: EventHubOptions): EventHub => {
  const { chain, heads, ask } = options;
  const { log, metrics } = options.telemetry;
  const ending = new AbortController();
  const events = createEventCounter();
  const newHeads = new Set<Subscription>();
  const syncing = new Set<Subscription>();
  const audience = {
    blocks: new Set<Subscription>(),
    hashes: new Set<Subscription>(),
    transactions: new Set<Subscription>(),
    matching: createLogIndex<Subscription>(),
  };
  const logs = createLogIndex<Subscription>();
  const pendingLogs = createLogIndex<Subscription>();
  let newestPendingLogs = 0;
  let lastNumber = heads.current()?.latest.number;

  const counted = (kind: SubscriptionKind) => {
    const delivered = metrics.delivered.labels({ chain, kind });
    return (count: number): void => {
      if (count > 0) delivered.inc(count);
    };
  };
  const count = {
    logs: counted("logs"),
    newFlashblocks: counted("newFlashblocks"),
    newFlashblockTransactions: counted("newFlashblockTransactions"),
  };

  const tellHeads = createNewHeads({ audience: newHeads, ask, onDelivered: counted("newHeads"), log });
  const flashblocks = createFlashblocks({
    audience,
    head: () => heads.current()?.latest.number ?? 0n,
    ask,
    onDelivered: (kind, to) => count[kind](to),
    log,
  });
  const preconfirmed = createPendingLogs({
    index: pendingLogs,
    events,
    newest: () => newestPendingLogs,
    onDelivered: counted("pendingLogs"),
  });
  const sync = createSyncing({ audience: syncing, ask, onDelivered: counted("syncing") });
  const pool = createPoolEvents({ source: options.pool, onDelivered: counted("newPendingTransactions") });

  const tellLogs = ({ logs: list, event }: SealedBlockLogs, removed: boolean): void => {
    for (const each of removed ? list.toReversed() : list) {
      const receivers = [...logs.match(each)].filter(({ since }) => since < event);
      if (receivers.length > 0) count.logs(broadcast(createNotification(each.body(removed)), receivers));
    }
  };
  const sealedLogs = createSealedLogs({
    current: heads.current,
    ask,
    events,
    isWanted: () => logs.size > 0 || pendingLogs.size > 0,
    onAdded: (block) => {
      tellLogs(block, false);
      preconfirmed.onSealed(block);
    },
    onRemoved: (block) => {
      tellLogs(block, true);
      preconfirmed.onUnsealed(block);
    },
    log,
    signal: ending.signal,
  });

  const stopHeads = heads.subscribe((change) => {
    const [first] = change.to;
    if (!first) return;
    if (lastNumber !== undefined && first.number > lastNumber + 1n) options.onMissed(first.number - lastNumber - 1n);
    lastNumber = change.heads.latest.number;
    tellHeads(change);
    sealedLogs(change);
    flashblocks.onHead(change);
  });
  const stopPending = options.pending?.subscribe((change) => {
    flashblocks.onPending(change);
    preconfirmed.onPending(change);
  });

  const nodePending =
    options.nodePending &&
    createNodePending({
      ...options.nodePending,
      wantsLogs: () => pendingLogs.size > 0,
      wantsBlocks: () => audience.blocks.size + audience.hashes.size > 0,
      onLogs: preconfirmed.onNodePending,
      onBlock: flashblocks.onNodePending,
    });

  const inIndex = (index: LogIndex<Subscription>, filter: LogFilter): Registration =>
    placeIn(
      (subscription) => {
        if (index === pendingLogs) newestPendingLogs = subscription.since;
        index.add(filter, subscription);
      },
      (subscription) => index.delete(filter, subscription),
    );

  return {
    get current() {
      return events.current;
    },
    register: async (wanted) => {
      switch (wanted.kind) {
        case "newHeads":
          return inSet(newHeads);
        case "syncing":
          return inSet(syncing);
        case "newFlashblocks":
          return inSet(audience.blocks);
        case "newFlashblockTransactions":
          if (wanted.filter) return inIndex(audience.matching, wanted.filter);
          return inSet(wanted.isFull ? audience.transactions : audience.hashes);
        case "logs":
          return inIndex(logs, wanted.filter);
        case "pendingLogs":
          return inIndex(pendingLogs, wanted.filter);
        case "newPendingTransactions":
          return pool(wanted.isFull);
      }
    },
    close: () => {
      ending.abort();
      stopHeads();
      stopPending?.();
      nodePending?.close();
      sync.close();
    },
  };
};
