import { type Hash, isHash, lowerPrefix } from "../ethereum/hex.ts";
import { isFields } from "../json/jsonBytes.ts";
import { invalidParams } from "../jsonrpc/rpcError.ts";
import type { Deliveries } from "./deliveries.ts";
import type { SealedBlockReceipts, SealedReceipt, WantedReceipts } from "./sealedReceipts.ts";
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

const OPEN = Buffer.from("[");
const COMMA = Buffer.from(",");
const CLOSE = Buffer.from("]");

/** Returns the JSON text of a list, in parts. No receipt is formatted or copied. */
const formatList = (list: readonly SealedReceipt[]): readonly Uint8Array[] => [
  ...list.flatMap(({ text }, index) => [index === 0 ? OPEN : COMMA, text]),
  CLOSE,
];

/** The `transactionReceipts` subscriptions, by transaction hash. */
export class ReceiptSubscribers implements WantedReceipts {
  readonly #all = new Set<Subscription>();
  readonly #byHash = new Map<string, Set<Subscription>>();

  get isEmpty(): boolean {
    return this.#all.size === 0 && this.#byHash.size === 0;
  }

  get hasAll(): boolean {
    return this.#all.size > 0;
  }

  has(transactionHash: string): boolean {
    return this.#byHash.has(transactionHash);
  }

  /** Without hashes, the subscription gets all receipts. */
  add(hashes: readonly Hash[], subscription: Subscription): void {
    if (hashes.length === 0) {
      this.#all.add(subscription);
    }
    for (const hash of hashes) {
      const subscriptions = this.#byHash.get(hash) ?? new Set();
      this.#byHash.set(hash, subscriptions.add(subscription));
    }
  }

  delete(hashes: readonly Hash[], subscription: Subscription): void {
    this.#all.delete(subscription);
    for (const hash of hashes) {
      const subscriptions = this.#byHash.get(hash);
      subscriptions?.delete(subscription);
      if (subscriptions?.size === 0) {
        this.#byHash.delete(hash);
      }
    }
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
      const ofReceipt = this.#byHash.get(String(receipt.fields.transactionHash).toLowerCase()) ?? [];
      for (const subscription of beganBefore(event, ofReceipt)) {
        const list = lists.get(subscription) ?? [];
        lists.set(subscription, list);
        list.push(receipt);
        yield;
      }
    }
    for (const [subscription, list] of lists) {
      // It may have ended in the meantime.
      if (subscription.subscriber.subscriptions.has(subscription.id)) {
        notify(subscription, createNotification(formatList(list)));
      }
      yield;
    }
  }
}
