import type { LogFilter } from "../ethereum/logFilter.ts";
import { createLogIndex, type LogIndex } from "../ethereum/logIndex.ts";
import type { Registration } from "./poolEvents.ts";
import type { Subscription } from "./subscriber.ts";
import type { SubscriptionRequest } from "./subscriptionKinds.ts";

/** A request for events of the chain. `newPendingTransactions` are events of the nodes' pools. */
export type ChainEventRequest = Exclude<SubscriptionRequest, { readonly kind: "newPendingTransactions" }>;

/** Creates a registration in a set or an index. It never rejects a subscription. */
const registerIn = (
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
      if (own) {
        remove(own);
      }
    },
  };
};

const registerInSet = (set: Set<Subscription>): Registration =>
  registerIn(
    (subscription) => set.add(subscription),
    (subscription) => set.delete(subscription),
  );

const registerInIndex = (index: LogIndex<Subscription>, filter: LogFilter): Registration =>
  registerIn(
    (subscription) => index.add(filter, subscription),
    (subscription) => index.delete(filter, subscription),
  );

/** The active subscriptions to one chain's events, by kind. */
export class EventSubscribers {
  readonly newHeads = new Set<Subscription>();
  readonly syncing = new Set<Subscription>();
  readonly flashblocks = {
    blocks: new Set<Subscription>(),
    hashes: new Set<Subscription>(),
    transactions: new Set<Subscription>(),
    matching: createLogIndex<Subscription>(),
  };
  readonly logs = createLogIndex<Subscription>();
  readonly pendingLogs = createLogIndex<Subscription>();
  #newestPendingLogs = 0;

  /** `since` of the newest `pendingLogs` subscription; 0 before the first. */
  get newestPendingLogs(): number {
    return this.#newestPendingLogs;
  }

  /** Whether a subscription needs the logs of sealed blocks. */
  get wantsSealedLogs(): boolean {
    return this.logs.size > 0 || this.pendingLogs.size > 0;
  }

  /** Whether a subscription needs the pending block of a node. */
  get wantsNodeBlocks(): boolean {
    return this.flashblocks.blocks.size + this.flashblocks.hashes.size > 0;
  }

  register(request: ChainEventRequest): Registration {
    const { blocks, hashes, transactions, matching } = this.flashblocks;
    switch (request.kind) {
      case "newHeads":
        return registerInSet(this.newHeads);
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
        return registerInIndex(this.logs, request.filter);
      case "pendingLogs":
        return this.#registerPendingLogs(request.filter);
    }
  }

  #registerPendingLogs(filter: LogFilter): Registration {
    return registerIn(
      (subscription) => {
        this.#newestPendingLogs = subscription.since;
        this.pendingLogs.add(filter, subscription);
      },
      (subscription) => this.pendingLogs.delete(filter, subscription),
    );
  }
}
