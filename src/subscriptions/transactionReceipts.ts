import { type Hash, isHash, lowerPrefix } from "../ethereum/hex.ts";
import { isFields, listParts } from "../json/jsonBytes.ts";
import { invalidParams } from "../jsonrpc/rpcError.ts";
import type { AwaitedTransactions, Awaiting } from "./awaitedTransactions.ts";
import type { Deliveries } from "./deliveries.ts";
import type { SealedBlockReceipts, SealedReceipt } from "./sealedReceipts.ts";
import { beganBefore, createNotification, type Delivered, type Notification, type Subscription } from "./subscriber.ts";

/** The limit of geth (eth/filters, maxTxHashes). */
const MAX_HASHES = 200;

/** Parses 32 bytes of hex. Throws RpcError. */
export const parseTransactionHash = (value: unknown): Hash => {
  const hex = lowerPrefix(value);
  if (!isHash(hex)) {
    throw invalidParams("expected a transaction's hash, 32 bytes of hex");
  }
  return `0x${hex.slice(2).toLowerCase()}`;
};

/** Parses the option of `transactionReceipts`. Returns the hashes in lower case; none stand for all transactions. */
export const parseReceiptHashes = (option: unknown): readonly Hash[] => {
  if (option === undefined || option === null) {
    return [];
  }
  const hashes = isFields(option) ? (option.transactionHashes ?? []) : undefined;
  if (!Array.isArray(hashes)) {
    throw invalidParams("expected {transactionHashes: [...]}");
  }
  if (hashes.length > MAX_HASHES) {
    throw invalidParams(`transactionHashes: more than ${MAX_HASHES} hashes`);
  }
  return [...new Set(hashes.map(parseTransactionHash))];
};

/** A subscription to the receipts of some transactions. */
interface AwaitedReceipts extends Awaiting {
  readonly kind: "transactionReceipts";
}

const isAwaitedReceipts = (awaiting: Awaiting): awaiting is AwaitedReceipts => awaiting.kind === "transactionReceipts";

/** The `transactionReceipts` subscriptions. */
export class ReceiptSubscribers {
  readonly #awaited: AwaitedTransactions;
  readonly #all = new Set<Subscription>();
  #named = 0;

  constructor(awaited: AwaitedTransactions) {
    this.#awaited = awaited;
  }

  get isEmpty(): boolean {
    return this.#all.size === 0 && this.#named === 0;
  }

  get hasAll(): boolean {
    return this.#all.size > 0;
  }

  /** Adds a subscription: without hashes, to all receipts. Returns the function that removes it. */
  add(hashes: readonly Hash[], subscription: Subscription): () => void {
    if (hashes.length === 0) {
      this.#all.add(subscription);
      return () => this.#all.delete(subscription);
    }
    const awaiting: AwaitedReceipts = { kind: "transactionReceipts", subscription };
    for (const hash of hashes) {
      this.#awaited.add(hash, awaiting);
    }
    this.#named++;
    return () => {
      for (const hash of hashes) {
        this.#awaited.delete(hash, awaiting);
      }
      this.#named--;
    };
  }

  /** Sends each subscription the list of its receipts in the block, as geth does. An empty list is not sent. */
  deliver({ body, receipts, event }: SealedBlockReceipts, deliveries: Deliveries, delivered: Delivered): void {
    if (receipts.length > 0) {
      deliveries.send(delivered, () => body, beganBefore(event, this.#all));
      deliveries.run(
        delivered,
        this.#sendLists(receipts, event, (...sent) => deliveries.notify(delivered, ...sent)),
      );
    }
  }

  *#sendLists(
    receipts: readonly SealedReceipt[],
    event: number,
    notify: (subscription: Subscription, message: Notification) => void,
  ): Generator<void> {
    const lists = new Map<Subscription, SealedReceipt[]>();
    for (const receipt of receipts) {
      const hash = String(receipt.fields.transactionHash).toLowerCase();
      const own = this.#awaited.of(hash, isAwaitedReceipts).map(({ subscription }) => subscription);
      for (const subscription of beganBefore(event, own)) {
        const list = lists.get(subscription) ?? [];
        lists.set(subscription, list);
        list.push(receipt);
        yield;
      }
    }
    for (const [subscription, list] of lists) {
      // It may have ended in the meantime.
      if (subscription.subscriber.subscriptions.has(subscription.id)) {
        notify(subscription, createNotification(listParts(list.map(({ text }) => text))));
      }
      yield;
    }
  }
}
