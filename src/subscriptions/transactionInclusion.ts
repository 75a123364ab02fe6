import type { Caller } from "../core/context.ts";
import type { BlockId, HeadChange, Heads } from "../core/heads.ts";
import type { Body, PendingBlock, PendingChange, View } from "../core/view.ts";
import { formatQuantity, isHash, isQuantity } from "../ethereum/hex.ts";
import { type Fields, parseJson } from "../json/jsonBytes.ts";
import { members } from "../json/members.ts";
import type { Log } from "../telemetry/telemetry.ts";
import type { AwaitedTransactions, Awaiting } from "./awaitedTransactions.ts";
import type { Deliveries } from "./deliveries.ts";
import type { InclusionRequest } from "./inclusionRequest.ts";
import type { RpcReader } from "./sealedLogs.ts";
import type { SealedBlockReceipts } from "./sealedReceipts.ts";
import { createNotification, type Delivered, type Notification, type Registration, registerIn } from "./subscriber.ts";

/** `preconfirmed` is not in EIP-8072: the transaction is in the pending block of the feed. */
type InclusionStatus = "preconfirmed" | "included" | "reorged" | "finalized";

/** Where a block has the transaction. */
interface Inclusion extends BlockId {
  readonly transactionIndex: bigint;
}

/** A receipt's JSON text, and where its block has the transaction. */
interface PlacedReceipt {
  readonly place: Inclusion;
  readonly text: Body;
}

/** Returns the place of a transaction by its receipt. Undefined if this is no receipt of a block. */
const placeOf = ({ blockHash: hash, blockNumber, transactionIndex }: Fields): Inclusion | undefined =>
  isHash(hash) && isQuantity(blockNumber) && isQuantity(transactionIndex)
    ? { hash, number: BigInt(blockNumber), transactionIndex: BigInt(transactionIndex) }
    : undefined;

const PLACE_FIELDS: ReadonlySet<string> = new Set(["blockHash", "blockNumber", "transactionIndex"]);

/** Finds the place in the text of a receipt, or of `null`. Its other fields are not parsed: a receipt can have megabytes of logs. */
const placedReceipt = (text: Body): PlacedReceipt | undefined => {
  const found = members(text).filter(({ key }) => PLACE_FIELDS.has(key));
  const place = placeOf(Object.fromEntries(found.map(({ key, value }) => [key, parseJson(value)])));
  return place && { place, text };
};

const NULL = Buffer.from("null");
const CLOSE = Buffer.from("}");

/** Creates a notification. The text of the receipt is not copied. A transaction that is taken back has none. */
const createInclusion = (
  status: InclusionStatus,
  { hash, number, transactionIndex }: Inclusion,
  receipt: Body = NULL,
): Notification => {
  const place = {
    status,
    blockHash: hash,
    blockNumber: formatQuantity(number),
    transactionIndex: formatQuantity(transactionIndex),
  };
  const head = `${JSON.stringify(place).slice(0, -1)},"receipt":`;
  return createNotification([Buffer.from(head), receipt, CLOSE]);
};

interface Watch extends InclusionRequest, Awaiting {
  readonly kind: "transactionInclusion";
  /** It pays for the reads. */
  readonly caller: Caller;
  /** What the client was told last. */
  preconfirmed: Inclusion | undefined;
  included: Inclusion | undefined;
  /** Reads of the receipt that are still to come: the block of the transaction may be older than the subscription. */
  lookups: number;
  isFinalizing: boolean;
}

const isWatch = (awaiting: Awaiting): awaiting is Watch => awaiting.kind === "transactionInclusion";

export interface TransactionInclusionOptions {
  readonly awaited: AwaitedTransactions;
  readonly current: () => Heads | undefined;
  readonly read: RpcReader;
  readonly deliveries: Deliveries;
  readonly delivered: Delivered;
  readonly log: Log;
}

/** A node may not have the newest block yet when the subscription begins. The next head repeats the read. */
const LOOKUPS = 2;

/** Whether the block is in these heads. For a block below the block ring, it relies on the nodes. */
const isServed = ({ number, hash }: BlockId, { latest, oldest, at }: Heads): boolean =>
  number <= latest.number && (number < oldest || at(number)?.hash === hash);

/**
 * The delivery of `transactionInclusion` subscriptions (EIP-8072): the transaction is included, and with `includesReorgs` also that its block
 * was replaced, and that it is final. Before, it may be pre-confirmed. It ends each subscription after the last notification.
 */
export class TransactionInclusion {
  readonly #options: TransactionInclusionOptions;
  /** Not included yet. */
  readonly #waiting = new Set<Watch>();
  /** Included, and not final yet. */
  readonly #included = new Set<Watch>();
  /** The reads of receipts that have not ended, by transaction hash. */
  readonly #reads = new Map<string, Promise<PlacedReceipt | undefined>>();
  #view: View | undefined;

  constructor(options: TransactionInclusionOptions) {
    this.#options = options;
  }

  get isEmpty(): boolean {
    return this.#waiting.size === 0;
  }

  register(request: InclusionRequest, caller: Caller): Registration {
    return registerIn((subscription) => {
      const told = { preconfirmed: undefined, included: undefined };
      const watch: Watch = { ...request, ...told, caller, subscription, lookups: LOOKUPS, isFinalizing: false };
      this.#add(watch);
      return () => this.#remove(watch);
    });
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
    this.#run(this.#followHead(new Set(from.map(({ hash }) => hash)), heads));
  }

  /** Takes the receipts of each new block, in the order of the chain. */
  onSealed(block: SealedBlockReceipts): void {
    this.#run(this.#takeReceipts(block));
  }

  /** Resolves when all that was taken is sent. */
  sent(): Promise<void> {
    return this.#options.deliveries.sent(this.#options.delivered);
  }

  #run(steps: Iterator<unknown>): void {
    this.#options.deliveries.run(this.#options.delivered, steps);
  }

  *#followHead(replaced: ReadonlySet<string>, heads: Heads): Generator<void> {
    for (const watch of replaced.size > 0 ? [...this.#included] : []) {
      if (watch.included !== undefined && replaced.has(watch.included.hash)) {
        this.#takeBack(watch, watch.included);
        yield;
      }
    }
    for (const watch of [...this.#waiting]) {
      this.#look(watch);
      yield;
    }
    yield* this.#finalize(heads);
  }

  *#takeReceipts({ block, receipts }: SealedBlockReceipts): Generator<void> {
    for (const { text, fields } of receipts) {
      const place = placeOf(fields);
      const watches = this.#watchesOf(String(fields.transactionHash).toLowerCase());
      if (place !== undefined && watches.length > 0) {
        yield* this.#includeAll(watches, { place, text });
      }
    }
    const heads = this.#options.current();
    for (const watch of heads !== undefined && isServed(block, heads) ? [...this.#waiting] : []) {
      if (watch.preconfirmed !== undefined && watch.preconfirmed.number <= block.number) {
        this.#takeBack(watch, watch.preconfirmed);
        yield;
      }
    }
  }

  /** Returns those that wait for the transaction. */
  #watchesOf(hash: string | undefined): readonly Watch[] {
    return this.#options.awaited.of(hash ?? "", isWatch).filter((watch) => this.#waiting.has(watch));
  }

  #add(watch: Watch): void {
    this.#options.awaited.add(watch.hash, watch);
    this.#waiting.add(watch);
    const place = this.#view?.pending?.find(watch.hash);
    const head = this.#options.current()?.latest.number ?? 0n;
    if (place !== undefined && place.block.number > head) {
      this.#preconfirm(watch, place.block, place.index);
    }
    this.#look(watch);
  }

  #remove(watch: Watch): void {
    this.#options.awaited.delete(watch.hash, watch);
    this.#waiting.delete(watch);
    this.#included.delete(watch);
  }

  #send({ subscription }: Watch, message: Notification): void {
    this.#options.deliveries.notify(this.#options.delivered, subscription, message);
  }

  #end({ subscription: { id, subscriber } }: Watch): void {
    subscriber.subscriptions.get(id)?.();
  }

  /** A transaction without a receipt is not executed yet. */
  #preconfirm(watch: Watch, block: PendingBlock, index: number): void {
    const receipt = watch.preconfirmed?.number === block.number ? undefined : block.receipt(index);
    if (receipt !== undefined) {
      if (watch.preconfirmed !== undefined) {
        this.#takeBack(watch, watch.preconfirmed);
      }
      watch.preconfirmed = { number: block.number, hash: block.hash, transactionIndex: BigInt(index) };
      this.#send(watch, createInclusion("preconfirmed", watch.preconfirmed, receipt));
    }
  }

  /** Includes those that still wait, while the block is served. */
  *#includeAll(watches: readonly Watch[], { place, text }: PlacedReceipt): Generator<void> {
    const message = createInclusion("included", place, text);
    for (const watch of watches) {
      this.#include(watch, place, message);
      yield;
    }
  }

  #include(watch: Watch, place: Inclusion, message: Notification): void {
    const heads = this.#options.current();
    if (heads === undefined || !isServed(place, heads) || !this.#waiting.delete(watch)) {
      return;
    }
    this.#included.add(watch);
    watch.included = place;
    watch.preconfirmed = undefined;
    this.#send(watch, message);
    if (watch.includesReorgs) {
      this.#finalizeIfFinal(watch, heads);
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
      this.#send(watch, createInclusion("reorged", place));
    }
  }

  /** Finds a transaction whose block is older than the subscription. A failed read is repeated at the next head. */
  #look(watch: Watch): void {
    if (watch.lookups === 0) {
      return;
    }
    watch.lookups--;
    this.#readReceipt(watch)
      .then((found) => {
        if (found !== undefined) {
          this.#run(this.#includeAll([watch], found));
        }
      })
      .catch((err: unknown) => {
        watch.lookups++;
        this.#options.log.debug({ err }, "the receipt of a subscription will be read again");
      });
  }

  /** Reads the receipt of a transaction once for all that ask for it at the same time. The first of them pays. */
  #readReceipt({ hash, caller }: Watch): Promise<PlacedReceipt | undefined> {
    const reading = this.#reads.get(hash);
    if (reading !== undefined) {
      return reading;
    }
    const read = this.#options
      .read("eth_getTransactionReceipt", [hash], caller)
      .then(placedReceipt)
      .finally(() => this.#reads.delete(hash));
    this.#reads.set(hash, read);
    return read;
  }

  *#finalize(heads: Heads): Generator<void> {
    for (const watch of this.#included) {
      this.#finalizeIfFinal(watch, heads);
      yield;
    }
  }

  #finalizeIfFinal(watch: Watch, { finalized }: Heads): void {
    const { included } = watch;
    if (finalized !== undefined && included !== undefined && included.number <= finalized.number) {
      this.#sendFinal(watch, included);
    }
  }

  /** A failed read is repeated at the next head. */
  #sendFinal(watch: Watch, place: Inclusion): void {
    if (watch.isFinalizing) {
      return;
    }
    watch.isFinalizing = true;
    this.#readReceipt(watch)
      .then((found) => {
        if (found?.place.hash === place.hash) {
          this.#run(this.#endFinal(watch, found));
        }
      })
      .catch((err: unknown) => this.#options.log.debug({ err }, "the receipt of a subscription will be read again"))
      .finally(() => {
        watch.isFinalizing = false;
      });
  }

  *#endFinal(watch: Watch, { place, text }: PlacedReceipt): Generator<void> {
    if (this.#included.has(watch)) {
      this.#send(watch, createInclusion("finalized", place, text));
      this.#end(watch);
      yield;
    }
  }
}
