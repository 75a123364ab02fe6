import type { Caller } from "../core/context.ts";
import type { Grade } from "../core/grade.ts";
import type { HeadChange } from "../core/heads.ts";
import type { PendingChange } from "../core/view.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { Deliveries } from "./deliveries.ts";
import {
  createPoolEvents,
  EventSubscribers,
  type PoolEventsOptions,
  PROVEN_EVENTS,
  type SubscriptionKind,
  type SubscriptionRequest,
} from "./eventSubscribers.ts";
import { parseLogs, type SubscribedLog } from "./filterIndex.ts";
import { FlashblockDelivery } from "./flashblockDelivery.ts";
import { PendingLogs } from "./pendingLogs.ts";
import { SealedEvents, type SealedSource } from "./sealedEvents.ts";
import type { RpcReader } from "./sealedLogs.ts";
import { createSealedReceipts } from "./sealedReceipts.ts";
import { type Delivered, EventCounter, type Registration } from "./subscriber.ts";
import { createSyncing } from "./syncing.ts";
import { TransactionInclusion } from "./transactionInclusion.ts";

export interface EventHubOptions extends SealedSource {
  /** Label of metrics. */
  readonly chain: string;
  /** Returns the source for clients that require proven events. Default: there are no such clients. */
  readonly provenSource?: () => SealedSource;
  /** Absent if the chain has no pending state. Subscriptions to pending events then get them with the sealed block. */
  readonly pending?: { subscribe(listener: (change: PendingChange) => void): () => void };
  /** Absent if no node is polled at `pending`. */
  readonly nodePending?: NodePendingSource;
  readonly pool: PoolEventsOptions["source"];
  /** Sends the events of all chains. */
  readonly deliveries: Deliveries;
  /** Called with the number of blocks that were skipped. Their events are lost, so subscribers must be informed. */
  onMissed(blocks: bigint): void;
  readonly telemetry: Pick<Telemetry, "log" | "metrics">;
}

/**
 * Delivers the events of one chain. Each event is read and formatted once for any number of subscriptions. A client that requires
 * proofs is sent what is proven of sealed blocks, once they are agreed. It reads and polls until it is closed.
 */
export class EventHub {
  readonly #options: EventHubOptions;
  readonly #events = new EventCounter();
  readonly #subscribers = new EventSubscribers();
  readonly #ending = new AbortController();
  readonly #sealed: SealedEvents;
  /** Undefined until the first subscription of a client that requires proofs. */
  #proven: SealedEvents | undefined;
  readonly #readSealedReceipts: (change: HeadChange) => void;
  readonly #flashblocks: FlashblockDelivery;
  readonly #pendingLogs: PendingLogs;
  readonly #inclusion: TransactionInclusion;
  readonly #registerPool: (isFull: boolean) => Promise<Registration>;
  readonly #stops: (() => void)[];

  constructor(options: EventHubOptions) {
    const { deliveries } = options;
    const events = this.#events;
    this.#options = options;
    this.#flashblocks = this.#createFlashblocks();
    this.#pendingLogs = new PendingLogs({
      index: this.#subscribers.pendingLogs,
      ...{ deliveries, events },
      newest: () => this.#subscribers.newestPendingLogs,
      delivered: this.#deliveredOf("pendingLogs"),
    });
    this.#sealed = this.#createSealed(options, this.#pendingLogs);
    this.#inclusion = new TransactionInclusion({
      ...this.#deliveryOf(options),
      awaited: this.#subscribers.awaited,
      delivered: this.#deliveredOf("transactionInclusion"),
    });
    const syncing = createSyncing({
      ...this.#deliveryOf(options),
      subscribers: this.#subscribers.syncing,
      delivered: this.#deliveredOf("syncing"),
    });
    this.#registerPool = createPoolEvents({
      source: options.pool,
      ...{ deliveries, events },
      delivered: this.#deliveredOf("newPendingTransactions"),
    });
    this.#readSealedReceipts = this.#createSealedReceipts();
    this.#stops = [...this.#follow(), () => syncing.close()];
  }

  /** Number of the newest event. A subscription gets the events after it. */
  get current(): number {
    return this.#events.current;
  }

  /** `needs`: the grade of the events that are sent. Rejects if no node offers the events. */
  async register(request: SubscriptionRequest, caller: Caller, needs: Grade): Promise<Registration> {
    const sealed = needs === "proven" ? this.#provenEvents(request) : this.#sealed;
    switch (request.kind) {
      case "newPendingTransactions":
        return this.#registerPool(request.isFull);
      case "transactionInclusion":
        return this.#inclusion.register(request, caller);
      default:
        return this.#subscribers.register(request, sealed);
    }
  }

  close(): void {
    this.#ending.abort();
    for (const stop of this.#stops) {
      stop();
    }
  }

  #deliveredOf(kind: SubscriptionKind): Delivered {
    const { chain, telemetry } = this.#options;
    return telemetry.metrics.delivered.series({ chain, kind });
  }

  /** What all deliveries of the events of a source have in common. */
  #deliveryOf({ heads, read }: SealedSource) {
    const { deliveries, onMissed, telemetry } = this.#options;
    const { log } = telemetry;
    const current = () => heads.current();
    return { current, read, deliveries, onMissed, log, events: this.#events, signal: this.#ending.signal };
  }

  /** `pendingLogs`: those of clients that require no proofs. */
  #createSealed(source: SealedSource, pendingLogs?: PendingLogs): SealedEvents {
    return new SealedEvents({
      ...{ ...this.#deliveryOf(source), pendingLogs, isProven: pendingLogs === undefined },
      delivered: { newHeads: this.#deliveredOf("newHeads"), logs: this.#deliveredOf("logs") },
    });
  }

  /** Throws for events that cannot be proven. */
  #provenEvents({ kind }: SubscriptionRequest): SealedEvents {
    const { provenSource } = this.#options;
    if (provenSource === undefined || !PROVEN_EVENTS.has(kind)) {
      throw new RangeError(`${kind} has no proven events`);
    }
    if (this.#proven !== undefined) {
      return this.#proven;
    }
    const source = provenSource();
    const proven = this.#createSealed(source);
    this.#proven = proven;
    this.#stops.push(source.heads.subscribe((change) => proven.onHead(change)));
    return proven;
  }

  #createFlashblocks(): FlashblockDelivery {
    return new FlashblockDelivery({
      ...this.#deliveryOf(this.#options),
      subscribers: this.#subscribers.flashblocks,
      deliveredBlocks: this.#deliveredOf("newFlashblocks"),
      deliveredTransactions: this.#deliveredOf("newFlashblockTransactions"),
    });
  }

  #createSealedReceipts(): (change: HeadChange) => void {
    const { deliveries } = this.#options;
    const { receipts, awaited } = this.#subscribers;
    const inclusion = this.#inclusion;
    const delivered = this.#deliveredOf("transactionReceipts");
    return createSealedReceipts({
      ...this.#deliveryOf(this.#options),
      wanted: {
        isEmpty: () => receipts.isEmpty && inclusion.isEmpty,
        has: (hash) => receipts.hasAll || awaited.has(hash),
      },
      onAdded: async (block) => {
        receipts.deliver(block, deliveries, delivered);
        inclusion.onSealed(block);
        await deliveries.sent(delivered);
        await inclusion.sent();
      },
    });
  }

  /** Subscribes to the sources of events. Returns the functions that end it. */
  #follow(): readonly (() => void)[] {
    const { heads, pending, nodePending } = this.#options;
    const stops = [heads.subscribe((change) => this.#onHead(change))];
    const stopPending = pending?.subscribe((change) => {
      this.#flashblocks.onPending(change);
      this.#pendingLogs.onPending(change);
      this.#inclusion.onPending(change);
    });
    if (stopPending) {
      stops.push(stopPending);
    }
    if (nodePending === undefined) {
      return stops;
    }
    const polling = createNodePending({
      ...nodePending,
      wantsLogs: () => this.#pendingLogs.isWanted,
      wantsBlocks: () => this.#subscribers.wantsNodeBlocks,
      onLogs: (logs) => this.#pendingLogs.onNodePending(logs),
      onBlock: (body) => this.#flashblocks.onNodePending(body),
    });
    return [...stops, () => polling.close()];
  }

  #onHead(change: HeadChange): void {
    this.#inclusion.onHead(change);
    if (change.from.length > 0 || change.to.length > 0) {
      this.#sealed.onHead(change);
      this.#readSealedReceipts(change);
      this.#flashblocks.onHead(change);
    }
  }
}

/** The node's own pending block. It is used if there is no feed and the chain is not native. */
interface NodePendingSource {
  /** Whether a node answers at `pending` now. */
  isServing(): boolean;
  /** Reads at `pending`. */
  readonly read: RpcReader;
}

interface NodePendingOptions extends NodePendingSource {
  wantsLogs(): boolean;
  wantsBlocks(): boolean;
  onLogs(logs: readonly SubscribedLog[]): void;
  /** Called with the JSON text of the block with its transactions, or `null`. */
  onBlock(body: Uint8Array): void;
}

/** Pre-confirmed updates are at most 200 ms late. */
const PENDING_PERIOD_MS = 200;

/**
 * Polls the node's pending block while there is a subscription: one request for all of them, never two at a time.
 * The first poll is one period after the start.
 */
const createNodePending = (options: NodePendingOptions): { close(): void } => {
  const { read } = options;
  let isPolling = false;

  const poll = async (): Promise<void> => {
    if (options.wantsLogs()) {
      options.onLogs(parseLogs(await read("eth_getLogs", [{ fromBlock: "pending", toBlock: "pending" }])));
    }
    if (options.wantsBlocks()) {
      options.onBlock(await read("eth_getBlockByNumber", ["pending", true]));
    }
  };

  const timer = setInterval(() => {
    if (isPolling || !(options.wantsLogs() || options.wantsBlocks()) || !options.isServing()) {
      return;
    }
    isPolling = true;
    poll()
      // The next poll or the sealed block delivers what this one missed.
      .catch(() => undefined)
      .finally(() => {
        isPolling = false;
      });
  }, PENDING_PERIOD_MS);
  timer.unref();
  return { close: () => clearInterval(timer) };
};
