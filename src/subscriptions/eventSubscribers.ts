import { readLogQuery } from "../core/paramReaders.ts";
import type { Hash } from "../ethereum/hex.ts";
import type { LogFilter, LogFilterLimits } from "../ethereum/logFilter.ts";
import { invalidParams } from "../jsonrpc/rpcError.ts";
import { AwaitedTransactions } from "./awaitedTransactions.ts";
import type { Deliveries } from "./deliveries.ts";
import { FilterIndex } from "./filterIndex.ts";
import { type InclusionOfRaw, type InclusionRequest, parseInclusion } from "./inclusionRequest.ts";
import type { SealedEvents } from "./sealedEvents.ts";
import {
  beganBefore,
  type Delivered,
  type EventCounter,
  type Registration,
  registerIn,
  type Subscription,
} from "./subscriber.ts";
import { parseReceiptHashes, ReceiptSubscribers } from "./transactionReceipts.ts";

/** What a subscription is to. */
export type SubscriptionRequest =
  | InclusionRequest
  | { readonly kind: "newHeads" | "syncing" | "newFlashblocks" }
  | { readonly kind: "logs" | "pendingLogs"; readonly filter: LogFilter }
  | {
      readonly kind: "transactionReceipts";
      /** Empty: all transactions. */
      readonly hashes: readonly Hash[];
    }
  | { readonly kind: "newPendingTransactions"; readonly isFull: boolean }
  | {
      readonly kind: "newFlashblockTransactions";
      readonly isFull: boolean;
      /** Selects transactions with a matching log. */
      readonly filter?: LogFilter;
    };

/** The parsed parameters of eth_subscribe. */
export type ParsedSubscription = SubscriptionRequest | InclusionOfRaw;

export type SubscriptionKind = SubscriptionRequest["kind"];

const ANY: LogFilter = { addresses: [], topics: [] };

const parseFilter = (value: unknown, limits: LogFilterLimits): LogFilter => {
  if (value === undefined || value === null) {
    return ANY;
  }
  const { filter, blocks } = readLogQuery(value, limits);
  if ("blockHash" in blocks) {
    throw invalidParams("blockHash: a subscription is to blocks that are to come");
  }
  return filter;
};

const parseFull = (value: unknown): boolean => {
  if (value === undefined || value === null) {
    return false;
  }
  if (typeof value !== "boolean") {
    throw invalidParams("expected true for whole transactions, or false for their hashes");
  }
  return value;
};

/** Parses the parameters of eth_subscribe. Throws RpcError for options that have no effect. */
export const parseSubscription = (params: readonly unknown[], limits: LogFilterLimits): ParsedSubscription => {
  const [kind, option, ...more] = params;
  if (more.length > 0) {
    throw invalidParams("too many arguments, want at most 2");
  }
  switch (kind) {
    case "newHeads":
    case "syncing":
    case "newFlashblocks":
      if (option !== undefined && option !== null) {
        throw invalidParams(`${kind} takes no options`);
      }
      return { kind };
    case "logs":
    case "pendingLogs":
      return { kind, filter: parseFilter(option, limits) };
    case "transactionReceipts":
      return { kind, hashes: parseReceiptHashes(option) };
    case "transactionInclusion":
      return parseInclusion(option);
    case "newPendingTransactions":
      return { kind, isFull: parseFull(option) };
    case "newFlashblockTransactions":
      return typeof option === "object" && option !== null
        ? { kind, isFull: true, filter: parseFilter(option, limits) }
        : { kind, isFull: parseFull(option) };
    default:
      throw invalidParams(
        typeof kind === "string"
          ? `no subscription is called "${kind.slice(0, 64)}"`
          : "expected a subscription's name",
      );
  }
};

/** A request for events that many subscriptions share. `newPendingTransactions` are events of the nodes' pools. */
type ChainEventRequest = Exclude<
  SubscriptionRequest,
  { readonly kind: "newPendingTransactions" | "transactionInclusion" }
>;

const registerInSet = (set: Set<Subscription>): Registration =>
  registerIn((subscription) => {
    set.add(subscription);
    return () => set.delete(subscription);
  });

const registerInIndex = (index: FilterIndex<Subscription>, filter: LogFilter): Registration =>
  registerIn((subscription) => {
    index.add(filter, subscription);
    return () => index.delete(filter, subscription);
  });

/** The events that can be proven: those of sealed blocks. */
export const PROVEN_EVENTS: ReadonlySet<unknown> = new Set<SubscriptionKind>(["newHeads", "logs"]);

/** The active subscriptions to one chain's events, by kind. Those to headers and logs are in SealedEvents. */
export class EventSubscribers {
  readonly syncing = new Set<Subscription>();
  readonly flashblocks = {
    blocks: new Set<Subscription>(),
    hashes: new Set<Subscription>(),
    transactions: new Set<Subscription>(),
    matching: new FilterIndex<Subscription>(),
  };
  readonly pendingLogs = new FilterIndex<Subscription>();
  readonly awaited = new AwaitedTransactions();
  readonly receipts = new ReceiptSubscribers(this.awaited);
  #newestPendingLogs = 0;

  /** `since` of the newest `pendingLogs` subscription; 0 before the first. */
  get newestPendingLogs(): number {
    return this.#newestPendingLogs;
  }

  /** Whether a subscription needs the pending block of a node. */
  get wantsNodeBlocks(): boolean {
    return this.flashblocks.blocks.size + this.flashblocks.hashes.size > 0;
  }

  /** `sealed`: the events of sealed blocks that the client may see. */
  register(request: ChainEventRequest, sealed: Pick<SealedEvents, "newHeads" | "logs">): Registration {
    const { blocks, hashes, transactions, matching } = this.flashblocks;
    switch (request.kind) {
      case "newHeads":
        return registerInSet(sealed.newHeads);
      case "syncing":
        return registerInSet(this.syncing);
      case "newFlashblocks":
        return registerInSet(blocks);
      case "newFlashblockTransactions":
        if (request.filter) {
          return registerInIndex(matching, request.filter);
        }
        return registerInSet(request.isFull ? transactions : hashes);
      case "logs":
        return registerInIndex(sealed.logs, request.filter);
      case "pendingLogs":
        return this.#registerPendingLogs(request.filter);
      case "transactionReceipts":
        return registerIn((subscription) => this.receipts.add(request.hashes, subscription));
    }
  }

  #registerPendingLogs(filter: LogFilter): Registration {
    return registerIn((subscription) => {
      this.#newestPendingLogs = subscription.since;
      this.pendingLogs.add(filter, subscription);
      return () => this.pendingLogs.delete(filter, subscription);
    });
  }
}

export interface PoolEventsOptions {
  /** The pools of the nodes. `subscribe` rejects if no node offers the subscription. */
  readonly source: { subscribe(isFull: boolean, listener: (body: Uint8Array) => void): Promise<() => void> };
  readonly deliveries: Deliveries;
  readonly events: EventCounter;
  readonly delivered: Delivered;
}

interface PoolListener {
  readonly subscribers: Set<Subscription>;
  readonly stop: Promise<() => void>;
  registrations: number;
}

/**
 * Creates the delivery of `newPendingTransactions`. Hashes and full transactions have one listener each at the source.
 * A listener stops with its last registration. The returned function rejects if no node offers the subscription.
 */
export const createPoolEvents = ({
  source,
  deliveries,
  events,
  delivered,
}: PoolEventsOptions): ((isFull: boolean) => Promise<Registration>) => {
  const listeners = new Map<boolean, PoolListener>();

  const listen = (isFull: boolean): PoolListener => {
    const subscribers = new Set<Subscription>();
    const stop = source.subscribe(isFull, (body) =>
      deliveries.send(delivered, () => body, beganBefore(events.next(), subscribers)),
    );
    return { subscribers, stop, registrations: 0 };
  };

  /** Returns true if this was the listener's last registration. */
  const release = (isFull: boolean, listener: PoolListener): boolean => {
    listener.registrations--;
    if (listener.registrations > 0) {
      return false;
    }
    if (listeners.get(isFull) === listener) {
      listeners.delete(isFull);
    }
    return true;
  };

  return async (isFull) => {
    const listener = listeners.get(isFull) ?? listen(isFull);
    listeners.set(isFull, listener);
    listener.registrations++;
    let stop: () => void;
    try {
      stop = await listener.stop;
    } catch (error) {
      release(isFull, listener);
      throw error;
    }
    const { begin, end } = registerInSet(listener.subscribers);
    return {
      begin,
      end: () => {
        end();
        if (release(isFull, listener)) {
          stop();
        }
      },
    };
  };
};
