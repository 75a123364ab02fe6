import type { PendingChange, PendingExtension } from "../core/view.ts";
import type { Deliveries } from "./deliveries.ts";
import { type FilterIndex, logKey, type SubscribedLog } from "./filterIndex.ts";
import type { SealedBlockLogs } from "./sealedLogs.ts";
import type { Delivered, EventCounter, Subscription } from "./subscriber.ts";

export interface PendingLogsOptions {
  readonly index: FilterIndex<Subscription>;
  readonly events: EventCounter;
  /** Returns `since` of the newest subscription. */
  newest(): number;
  readonly deliveries: Deliveries;
  readonly delivered: Delivered;
}

/** A log that was sent to all subscriptions older than `event`. */
interface SentLog {
  readonly event: number;
  /** Undefined once its block is sealed: then the block's own logs are used. */
  readonly log: SubscribedLog | undefined;
}

/** A reorganisation of more blocks removes no logs. */
const MAX_BLOCKS = 128n;

const logsOf = ({ block, fromTransaction, toTransaction }: PendingExtension): readonly SubscribedLog[] =>
  block
    .logs(fromTransaction)
    .filter(({ transactionIndex }) => transactionIndex < toTransaction)
    .map((log) => ({
      address: log.address,
      topics: log.topics,
      number: block.number,
      key: logKey(log.transactionHash, log.logIndex),
      transactionHash: log.transactionHash,
      data: log.data,
      body: (removed) => block.formatLog(log, removed),
    }));

/** Whether both are one log of one place. The hash of a pending block changes with each flashblock. */
const isSame = (a: SubscribedLog, b: SubscribedLog | undefined): boolean =>
  a.number === b?.number &&
  a.key === b.key &&
  a.address === b.address &&
  a.data.toLowerCase() === b.data.toLowerCase() &&
  a.topics.join() === b.topics.join();

/**
 * The delivery of `pendingLogs` subscriptions. It sends each log once, as early as possible: when it is pre-confirmed, else with
 * the sealed block. The sealed block has new logs in native mode, after a gap in the feed, and for subscriptions that began in between.
 * A log that was sent and is not in the sealed block is sent again with `removed: true`. If its transaction moves to
 * another place before, it is removed first: clients may know a log by its transaction.
 */
export class PendingLogs {
  readonly #options: PendingLogsOptions;
  /** Sent logs by block number and log key. */
  readonly #sent = new Map<bigint, Map<string, SentLog>>();
  /** The logs of transactions of the feed that are not sealed yet, by transaction hash. */
  readonly #preconfirmed = new Map<string, readonly SubscribedLog[]>();

  constructor(options: PendingLogsOptions) {
    this.#options = options;
  }

  /** Whether there is a subscription. */
  get isWanted(): boolean {
    return this.#options.index.size > 0;
  }

  onPending({ extended }: PendingChange): void {
    const { index, events } = this.#options;
    if (index.size === 0) {
      return;
    }
    const event = events.next();
    for (const extension of extended) {
      const logs = logsOf(extension);
      for (const [transaction, its] of this.#removeMoved(logs)) {
        this.#preconfirmed.set(transaction, its);
      }
      this.#sendNew(logs, event);
    }
  }

  /** Takes all logs of a node's own pending block. A failing node may leave a log out: the sealed block decides which are removed. */
  onNodePending(logs: readonly SubscribedLog[]): void {
    this.#sendNew(logs, this.#options.events.next());
  }

  onSealed({ block: { number }, logs, event }: SealedBlockLogs): void {
    this.#removeMoved(logs);
    const ofBlock = this.#sentLogsOf(number);
    const sealedKeys = new Set(logs.map(({ key }) => key));
    for (const key of [...ofBlock.keys()].filter((each) => !sealedKeys.has(each)).reverse()) {
      this.#sendRemoved(number, key);
    }
    for (const log of logs) {
      const sentEvent = ofBlock.get(log.key)?.event ?? 0;
      if (this.#options.newest() >= sentEvent) {
        this.#send(log, false, (since) => since >= sentEvent && since < event);
      }
      ofBlock.set(log.key, { event: Math.max(sentEvent, event), log: undefined });
    }
    for (const [old, its] of this.#sent) {
      if (old < number - MAX_BLOCKS) {
        this.#sent.delete(old);
        for (const { log } of its.values()) {
          this.#preconfirmed.delete(log?.transactionHash ?? "");
        }
      }
    }
  }

  /** Resolves when all logs are sent. */
  sent(): Promise<void> {
    return this.#options.deliveries.sent(this.#options.delivered);
  }

  onUnsealed({ block: { number }, logs }: SealedBlockLogs): void {
    for (const log of logs.toReversed()) {
      this.#sendRemoved(number, log.key, log);
    }
  }

  /** A transaction has one place: those of its sent logs that are not among these are removed. Returns these by transaction. */
  #removeMoved(logs: readonly SubscribedLog[]): ReadonlyMap<string, readonly SubscribedLog[]> {
    const byTransaction = Map.groupBy(logs, ({ transactionHash }) => transactionHash);
    for (const [transaction, its] of byTransaction) {
      const sent = this.#preconfirmed.get(transaction);
      const byKey = new Map(sent && its.map((log) => [log.key, log]));
      for (const old of sent?.toReversed() ?? []) {
        if (!isSame(old, byKey.get(old.key))) {
          this.#sendRemoved(old.number, old.key);
        }
      }
      this.#preconfirmed.delete(transaction);
    }
    return byTransaction;
  }

  #sentLogsOf(number: bigint): Map<string, SentLog> {
    const ofBlock = this.#sent.get(number) ?? new Map<string, SentLog>();
    this.#sent.set(number, ofBlock);
    return ofBlock;
  }

  #send(log: SubscribedLog, removed: boolean, isReceiver: (since: number) => boolean): void {
    const { index, deliveries, delivered } = this.#options;
    const receivers = index.match(log).filter(({ since }) => isReceiver(since));
    deliveries.send(delivered, () => log.body(removed), receivers);
  }

  #sendNew(logs: readonly SubscribedLog[], event: number): void {
    for (const log of logs) {
      const ofBlock = this.#sentLogsOf(log.number);
      if (ofBlock.has(log.key)) {
        continue;
      }
      ofBlock.set(log.key, { event, log });
      this.#send(log, false, (since) => since < event);
    }
  }

  /** Sends the log with `removed: true` to the subscriptions that got it. `sealed` is the log of the sealed block. */
  #sendRemoved(number: bigint, key: string, sealed?: SubscribedLog): void {
    const { event = 0, log = sealed } = this.#sent.get(number)?.get(key) ?? {};
    this.#sent.get(number)?.delete(key);
    if (log) {
      // The transaction may be pre-confirmed in another block by now.
      if (this.#preconfirmed.get(log.transactionHash)?.[0]?.number === number) {
        this.#preconfirmed.delete(log.transactionHash);
      }
      this.#send(log, true, (since) => since < event);
    }
  }
}
