import type { BlockId, HeadChange, Heads } from "../core/heads.ts";
import type { Body, PendingBlock, PendingChange, View } from "../core/view.ts";
import { formatQuantity, isHash, isQuantity } from "../ethereum/hex.ts";
import { type Fields, formatJson, isFields, parseJson } from "../json/jsonBytes.ts";
import type { Log } from "../telemetry/telemetry.ts";
import type { Registration } from "./eventSubscribers.ts";
import type { InclusionRequest } from "./inclusionRequest.ts";
import type { RpcReader } from "./sealedLogs.ts";
import type { SealedBlockReceipts, WantedReceipts } from "./sealedReceipts.ts";
import { broadcast, type Delivered, type Subscription } from "./subscriber.ts";

/** `preconfirmed` is not in EIP-8072: the transaction is in the pending block of the feed. */
type InclusionStatus = "preconfirmed" | "included" | "reorged" | "finalized";

/** Where a block has the transaction. */
interface Inclusion extends BlockId {
  readonly transactionIndex: bigint;
}

/** Returns the place of a transaction by its receipt. Undefined if this is no receipt of a block. */
const placeOf = (receipt: unknown): Inclusion | undefined => {
  if (!isFields(receipt)) {
    return undefined;
  }
  const { blockHash: hash, blockNumber, transactionIndex } = receipt;
  return isHash(hash) && isQuantity(blockNumber) && isQuantity(transactionIndex)
    ? { hash, number: BigInt(blockNumber), transactionIndex: BigInt(transactionIndex) }
    : undefined;
};

/** Formats the result of a notification. A transaction that is taken back has no receipt. */
const formatInclusion = (
  status: InclusionStatus,
  { hash, number, transactionIndex }: Inclusion,
  receipt: Fields | null,
): Body =>
  formatJson({
    status,
    blockHash: hash,
    blockNumber: formatQuantity(number),
    transactionIndex: formatQuantity(transactionIndex),
    receipt,
  });

interface Watch extends InclusionRequest {
  readonly subscription: Subscription;
  /** What the client was told last. */
  preconfirmed: Inclusion | undefined;
  included: Inclusion | undefined;
  /** Reads of the receipt that are still to come: the block of the transaction may be older than the subscription. */
  lookups: number;
  isFinalizing: boolean;
}

export interface TransactionInclusionOptions {
  readonly current: () => Heads | undefined;
  readonly read: RpcReader;
  readonly delivered: Delivered;
  readonly log: Log;
}

/** A node may not have the newest block yet when the subscription begins. The next head repeats the read. */
const LOOKUPS = 2;

/** Whether the block is in these heads. Of a block below the block ring, the word of the nodes counts. */
const isServed = ({ number, hash }: BlockId, { latest, oldest, at }: Heads): boolean =>
  number <= latest.number && (number < oldest || at(number)?.hash === hash);

/**
 * The delivery of `transactionInclusion` subscriptions (EIP-8072): the transaction is included, and with `includesReorgs` also that its block
 * was replaced, and that it is final. Before, it may be pre-confirmed. It ends each subscription after the last notification.
 */
export class TransactionInclusion implements WantedReceipts {
  readonly hasAll = false;
  readonly #options: TransactionInclusionOptions;
  readonly #byHash = new Map<string, Set<Watch>>();
  /** Not included yet. */
  readonly #waiting = new Set<Watch>();
  /** Included, and not final yet. */
  readonly #included = new Set<Watch>();
  #view: View | undefined;

  constructor(options: TransactionInclusionOptions) {
    this.#options = options;
  }

  get isEmpty(): boolean {
    return this.#waiting.size === 0;
  }

  has(transactionHash: string): boolean {
    return this.#byHash.has(transactionHash);
  }

  /** It never rejects a subscription. */
  register(request: InclusionRequest): Registration {
    let own: Watch | undefined;
    return {
      begin: (subscription) => {
        own = {
          ...request,
          ...{ subscription, preconfirmed: undefined, included: undefined, lookups: LOOKUPS, isFinalizing: false },
        };
        this.#add(own);
      },
      end: () => {
        if (own) {
          this.#remove(own);
        }
      },
    };
  }

  onPending({ view, extended }: PendingChange): void {
    this.#view = view;
    if (this.#waiting.size === 0) {
      return;
    }
    for (const { block, fromTransaction, toTransaction } of extended) {
      for (let index = fromTransaction; index < toTransaction; index++) {
        for (const watch of this.#watchesOf(block.transactionHashes[index])) {
          this.#preconfirm(watch, block, index);
        }
      }
    }
  }

  /** Blocks that are replaced come before those that replace them: `onSealed` has only blocks that are canonical now. */
  onHead({ from, heads }: HeadChange): void {
    const replaced = new Set(from.map(({ hash }) => hash));
    for (const watch of replaced.size > 0 ? [...this.#included] : []) {
      if (watch.included !== undefined && replaced.has(watch.included.hash)) {
        this.#takeBack(watch, watch.included);
      }
    }
    for (const watch of [...this.#waiting]) {
      this.#look(watch);
    }
    this.#finalize(heads);
  }

  /** Takes the receipts of each new block, in the order of the chain. */
  onSealed({ block, receipts }: SealedBlockReceipts): void {
    const heads = this.#options.current();
    if (heads === undefined || !isServed(block, heads)) {
      return;
    }
    for (const receipt of receipts) {
      for (const watch of this.#watchesOf(String(receipt.transactionHash).toLowerCase())) {
        this.#include(watch, receipt, heads);
      }
    }
    for (const watch of [...this.#waiting]) {
      if (watch.preconfirmed !== undefined && watch.preconfirmed.number <= block.number) {
        this.#takeBack(watch, watch.preconfirmed);
      }
    }
  }

  /** Returns those that wait for the transaction. */
  #watchesOf(hash: string | undefined): readonly Watch[] {
    return [...(this.#byHash.get(hash ?? "") ?? [])].filter((watch) => this.#waiting.has(watch));
  }

  #add(watch: Watch): void {
    this.#byHash.set(watch.hash, (this.#byHash.get(watch.hash) ?? new Set()).add(watch));
    this.#waiting.add(watch);
    const place = this.#view?.pending?.find(watch.hash);
    const head = this.#options.current()?.latest.number ?? 0n;
    if (place !== undefined && place.block.number > head) {
      this.#preconfirm(watch, place.block, place.index);
    }
    this.#look(watch);
  }

  #remove(watch: Watch): void {
    const watches = this.#byHash.get(watch.hash);
    watches?.delete(watch);
    if (watches?.size === 0) {
      this.#byHash.delete(watch.hash);
    }
    this.#waiting.delete(watch);
    this.#included.delete(watch);
  }

  #send({ subscription }: Watch, status: InclusionStatus, place: Inclusion, receipt: Fields | null): void {
    broadcast(formatInclusion(status, place, receipt), [subscription], this.#options.delivered);
  }

  #end({ subscription: { id, subscriber } }: Watch): void {
    subscriber.subscriptions.get(id)?.();
  }

  /** A transaction without a receipt is not executed yet. */
  #preconfirm(watch: Watch, block: PendingBlock, index: number): void {
    const body = watch.preconfirmed === undefined ? block.receipt(index) : undefined;
    const receipt = body && parseJson(body);
    if (isFields(receipt)) {
      watch.preconfirmed = { number: block.number, hash: block.hash, transactionIndex: BigInt(index) };
      this.#send(watch, "preconfirmed", watch.preconfirmed, receipt);
    }
  }

  #include(watch: Watch, receipt: unknown, heads: Heads): void {
    const place = placeOf(receipt);
    if (place === undefined || !isFields(receipt) || !isServed(place, heads) || !this.#waiting.delete(watch)) {
      return;
    }
    this.#included.add(watch);
    watch.included = place;
    watch.preconfirmed = undefined;
    this.#send(watch, "included", place, receipt);
    if (watch.includesReorgs) {
      this.#finalize(heads);
    } else {
      this.#end(watch);
    }
  }

  /** The transaction is not in the chain any more, or not in the block that should have it. It may be included later. */
  #takeBack(watch: Watch, place: Inclusion): void {
    // A message can close the connection, which ends its other subscriptions.
    if (!this.#included.delete(watch) && !this.#waiting.has(watch)) {
      return;
    }
    watch.preconfirmed = undefined;
    watch.included = undefined;
    this.#waiting.add(watch);
    if (watch.includesReorgs) {
      this.#send(watch, "reorged", place, null);
    }
  }

  /** Finds a transaction whose block is older than the subscription. A failed read is repeated at the next head. */
  #look(watch: Watch): void {
    if (watch.lookups === 0) {
      return;
    }
    watch.lookups--;
    this.#readReceipt(watch)
      .then((receipt) => {
        const heads = this.#options.current();
        if (heads !== undefined) {
          this.#include(watch, receipt, heads);
        }
      })
      .catch((err: unknown) => {
        watch.lookups++;
        this.#options.log.debug({ err }, "the receipt of a subscription will be read again");
      });
  }

  async #readReceipt({ hash }: Watch): Promise<unknown> {
    return parseJson(await this.#options.read("eth_getTransactionReceipt", [hash]));
  }

  #finalize({ finalized }: Heads): void {
    for (const watch of this.#included) {
      const { included } = watch;
      if (finalized !== undefined && included !== undefined && included.number <= finalized.number) {
        this.#sendFinal(watch, included);
      }
    }
  }

  /** A failed read is repeated at the next head. */
  #sendFinal(watch: Watch, place: Inclusion): void {
    if (watch.isFinalizing) {
      return;
    }
    watch.isFinalizing = true;
    this.#readReceipt(watch)
      .then((receipt) => {
        if (this.#included.has(watch) && isFields(receipt) && placeOf(receipt)?.hash === place.hash) {
          this.#send(watch, "finalized", place, receipt);
          this.#end(watch);
        }
      })
      .catch((err: unknown) => this.#options.log.debug({ err }, "the receipt of a subscription will be read again"))
      .finally(() => {
        watch.isFinalizing = false;
      });
  }
}
