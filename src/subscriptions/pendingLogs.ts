import type { PendingChange, PendingExtension } from "../core/view.ts";
import { listParts } from "../json/jsonBytes.ts";
import type { Deliveries } from "./deliveries.ts";
import { type FilterIndex, logKey, parseLogs, type SubscribedLog } from "./filterIndex.ts";
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
      body: (removed) => block.formatLog(log, removed),
    }));

/**
 * The delivery of `pendingLogs` subscriptions. It sends each log once, as early as possible: when it is pre-confirmed, else with
 * the sealed block. The sealed block has new logs in native mode, after a gap in the feed, and for subscriptions that began in between.
 * A log that was sent and is not in the sealed block is sent again with `removed: true`.
 */
export class PendingLogs {
  readonly #options: PendingLogsOptions;
  /** Sent logs by block number and log key. */
  readonly #sent = new Map<bigint, Map<string, SentLog>>();

  constructor(options: PendingLogsOptions) {
    this.#options = options;
  }

  /** Whether there is a subscription. */
  get isWanted(): boolean {
    return this.#options.index.size > 0;
  }

  onPending({ removed, extended }: PendingChange): void {
    const { index, events } = this.#options;
    if (index.size === 0) {
      return;
    }
    const event = events.next();
    for (const { number, key } of parseLogs(Buffer.concat(listParts(removed)))) {
      this.#sendRemoved(number, key);
    }
    for (const extension of extended) {
      this.#sendNew(logsOf(extension), event);
    }
  }

  /** Takes all logs of a node's own pending block. A failing node may leave a log out: the sealed block decides which are removed. */
  onNodePending(logs: readonly SubscribedLog[]): void {
    this.#sendNew(logs, this.#options.events.next());
  }

  onSealed({ block: { number }, logs, event }: SealedBlockLogs): void {
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
    for (const old of this.#sent.keys()) {
      if (old < number - MAX_BLOCKS) {
        this.#sent.delete(old);
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
      this.#send(log, true, (since) => since < event);
    }
  }
}
