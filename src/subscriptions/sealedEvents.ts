import type { FollowedHeads, HeadChange } from "../core/heads.ts";
import type { Deliveries } from "./deliveries.ts";
import { FilterIndex } from "./filterIndex.ts";
import type { NewBlockReadsOptions } from "./newBlockReads.ts";
import { createNewHeads } from "./newHeadsSubscription.ts";
import type { PendingLogs } from "./pendingLogs.ts";
import { createSealedLogs, type RpcReader, type SealedBlockLogs } from "./sealedLogs.ts";
import { beganBefore, type Delivered, type EventCounter, type Subscription } from "./subscriber.ts";

/** The heads that a client is told of, and how what they contain is read. */
export interface SealedSource {
  readonly heads: FollowedHeads;
  readonly read: RpcReader;
}

export interface SealedEventsOptions extends NewBlockReadsOptions {
  readonly read: RpcReader;
  /** Only what `read` returns is sent. The header and the bloom of a head are not: its hash may not be computed. */
  readonly isProven: boolean;
  readonly deliveries: Deliveries;
  readonly events: EventCounter;
  readonly delivered: { readonly newHeads: Delivered; readonly logs: Delivered };
  /** They are settled by the logs of sealed blocks. */
  readonly pendingLogs?: PendingLogs | undefined;
}

/** Sends the headers and logs of sealed blocks: of the served chain, or what is proven of its agreed blocks. */
export class SealedEvents {
  readonly newHeads = new Set<Subscription>();
  readonly logs = new FilterIndex<Subscription>();
  readonly #options: SealedEventsOptions;
  readonly #sendHeads: (change: HeadChange) => void;
  readonly #readLogs: (change: HeadChange) => void;
  #lastNumber: bigint | undefined;

  constructor(options: SealedEventsOptions) {
    const { isProven, deliveries, delivered, pendingLogs } = options;
    this.#options = options;
    this.#lastNumber = options.current()?.latest.number;
    this.#sendHeads = createNewHeads({
      ...{ ...options, delivered: delivered.newHeads, subscribers: this.newHeads },
      headerOf: ({ number }, heads) => (isProven ? undefined : heads.header(number)),
    });
    this.#readLogs = createSealedLogs({
      ...{ ...options, trustsBloom: !isProven },
      isWanted: () => this.logs.size > 0 || pendingLogs?.isWanted === true,
      onAdded: async (block) => {
        this.#sendLogs(block, false);
        pendingLogs?.onSealed(block);
        await deliveries.sent(delivered.logs);
        await pendingLogs?.sent();
      },
      onRemoved: (block) => {
        this.#sendLogs(block, true);
        pendingLogs?.onUnsealed(block);
      },
    });
  }

  onHead(change: HeadChange): void {
    const { from, to } = change;
    const [first] = to;
    if (first === undefined && from.length === 0) {
      return;
    }
    const last = this.#lastNumber;
    if (first !== undefined && last !== undefined && first.number > last + 1n) {
      this.#options.onMissed(first.number - last - 1n);
    }
    this.#lastNumber = change.heads.latest.number;
    this.#sendHeads(change);
    this.#readLogs(change);
  }

  #sendLogs({ logs, event }: SealedBlockLogs, removed: boolean): void {
    const { deliveries, delivered } = this.#options;
    for (const log of removed ? logs.toReversed() : logs) {
      const receivers = beganBefore(event, this.logs.match(log));
      deliveries.send(delivered.logs, () => log.body(removed), receivers);
    }
  }
}
