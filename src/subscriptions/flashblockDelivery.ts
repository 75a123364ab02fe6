import type { HeadChange, RingBlock } from "../core/heads.ts";
import type { Body, PendingBlock, PendingChange, PendingExtension } from "../core/view.ts";
import { formatJson } from "../json/jsonBytes.ts";
import type { Deliveries } from "./deliveries.ts";
import type { FilterIndex, MatchedLog } from "./filterIndex.ts";
import {
  type FullTransaction,
  formatFullTransaction,
  formatPendingTransaction,
  parseTransactions,
  readSealedTransactions,
  type SealedTransactions,
} from "./fullTransaction.ts";
import { NewBlockReads, type NewBlockReadsOptions } from "./newBlockReads.ts";
import type { RpcReader } from "./sealedLogs.ts";
import { beganBefore, type Delivered, type EventCounter, type Subscription } from "./subscriber.ts";

/** The subscriptions to pending blocks and their transactions. */
export interface FlashblockSubscribers {
  readonly blocks: ReadonlySet<Subscription>;
  readonly hashes: ReadonlySet<Subscription>;
  /** Subscriptions to full transactions with their logs. */
  readonly transactions: ReadonlySet<Subscription>;
  /** Subscriptions to full transactions that have a matching log. */
  readonly matching: Pick<FilterIndex<Subscription>, "size" | "match">;
}

export interface FlashblocksOptions extends NewBlockReadsOptions {
  readonly subscribers: FlashblockSubscribers;
  readonly read: RpcReader;
  readonly deliveries: Deliveries;
  readonly events: EventCounter;
  readonly deliveredBlocks: Delivered;
  readonly deliveredTransactions: Delivered;
}

/** The hashes of a block's transactions that were sent, as hash or whole. */
interface SentTransactions {
  readonly hashes: Set<string>;
  readonly whole: Set<string>;
}

/** Sent transactions are remembered for this many blocks below the head. */
const MAX_BLOCKS = 128n;
/** Pending blocks wait for the sealed ones below them. If more would wait, those that are read later are not sent. */
const MAX_HELD = 64;

/** The delivery of `newFlashblocks` and `newFlashblockTransactions`. Each transaction is sent once. */
export class FlashblockDelivery {
  readonly #options: FlashblocksOptions;
  readonly #reads: NewBlockReads;
  /** By block number. A block with an entry was published before it was sealed. */
  readonly #sent = new Map<bigint, SentTransactions>();
  /** Sealed blocks that are read for `newFlashblocks`, because they were not published before. */
  readonly #awaited = new Set<RingBlock>();
  /** Pending blocks above them. */
  #held: PendingBlock[] = [];
  /** The number of the newest pending block that was sent. */
  #newest = 0n;
  /** The newest pending block of a node. */
  #nodeBody: Body = Buffer.alloc(0);

  constructor(options: FlashblocksOptions) {
    this.#options = options;
    this.#reads = new NewBlockReads(options);
  }

  onPending({ extended }: PendingChange): void {
    // With new logs alone, the block is the one that was sent: of its receipts it has only the nonces of deposits.
    const longer = extended.filter(({ kind }) => kind === "transactions");
    const begun = new Set(longer.filter(({ fromTransaction }) => fromTransaction === 0).map(({ block }) => block));
    for (const block of new Set(longer.map((extension) => extension.block))) {
      // A late message may extend a block below: subscribers have received the one above it. A block that begins replaces one.
      if (this.#options.subscribers.blocks.size > 0 && (block.number >= this.#newest || begun.has(block))) {
        this.#newest = block.number;
        this.#sendInTurn(block);
      }
    }
    for (const extension of extended) {
      this.#extend(extension);
    }
  }

  /** Takes the JSON text of a node's own pending block, or `null`. */
  onNodePending(body: Body): void {
    const { number, transactions } = parseTransactions(body);
    // A node without its own pending block returns its latest block.
    if (
      number === undefined ||
      number <= (this.#options.current()?.latest.number ?? 0n) ||
      Buffer.compare(body, this.#nodeBody) === 0
    ) {
      return;
    }
    this.#nodeBody = body;
    const sent = this.#sentOf(number);
    if (this.#options.subscribers.blocks.size > 0) {
      this.#sendBlock(body);
    }
    for (const { hash } of transactions) {
      this.#sendHash(sent, String(hash));
    }
  }

  /** Sends transactions of a sealed block that were not sent before: in native mode, and after gaps in the feed. */
  onHead({ heads, from, to }: HeadChange): void {
    for (const { number } of from) {
      this.#sent.delete(number);
      this.#newest = 0n;
    }
    const { subscribers, events } = this.#options;
    const event = events.next();
    for (const block of to) {
      if (subscribers.blocks.size > 0 && !this.#sent.has(block.number)) {
        this.#awaited.add(block);
      }
      if (this.#awaited.has(block) || subscribers.hashes.size > 0 || this.#wantsWhole) {
        this.#readSealed(block, event);
      }
    }
    for (const old of this.#sent.keys()) {
      if (old < heads.latest.number - MAX_BLOCKS) {
        this.#sent.delete(old);
      }
    }
  }

  get #wantsWhole(): boolean {
    const { transactions, matching } = this.#options.subscribers;
    return transactions.size > 0 || matching.size > 0;
  }

  #sentOf(number: bigint): SentTransactions {
    const sent = this.#sent.get(number) ?? { hashes: new Set(), whole: new Set() };
    this.#sent.set(number, sent);
    return sent;
  }

  #extend({ block, fromTransaction, toTransaction }: PendingExtension): void {
    const sent = this.#sentOf(block.number);
    for (let index = fromTransaction; index < toTransaction; index++) {
      const hash = block.transactionHashes[index];
      if (hash === undefined) {
        continue;
      }
      this.#sendHash(sent, hash);
      this.#sendWhole(sent, hash, () => formatPendingTransaction(block, index));
    }
  }

  #readSealed(sealed: RingBlock, event: number): void {
    const { read } = this.#options;
    this.#reads.add(
      sealed,
      (isRefused) => readSealedTransactions(read, sealed.hash, () => this.#wantsWhole, isRefused),
      (block) => {
        try {
          if (block !== undefined) {
            this.#sendSealed(sealed, block, event);
          }
        } finally {
          this.#release(sealed);
        }
      },
    );
  }

  #sendSealed(sealed: RingBlock, { body, transactions }: SealedTransactions, event: number): void {
    const sent = this.#sentOf(sealed.number);
    if (this.#awaited.has(sealed)) {
      this.#sendBlock(body, event);
    }
    if (transactions.some(({ receipt }) => receipt === undefined)) {
      const number = sealed.number.toString();
      this.#options.log.warn(
        { number },
        "transactions of a block are not sent whole: nodes refuse their receipts and logs",
      );
    }
    for (const { hash, transaction, receipt } of transactions) {
      this.#sendHash(sent, hash, event);
      this.#sendWhole(sent, hash, () => receipt && formatFullTransaction(transaction, receipt), event);
    }
  }

  /** Sends a pending block, after the sealed blocks below it. */
  #sendInTurn(block: PendingBlock): void {
    if (this.#awaited.size === 0) {
      this.#sendBlock(block.body(true));
      return;
    }
    this.#held.push(block);
    if (this.#held.length > MAX_HELD) {
      this.#awaited.clear();
      this.#sendHeld();
    }
  }

  #release(sealed: RingBlock): void {
    if (this.#awaited.delete(sealed) && this.#awaited.size === 0) {
      this.#sendHeld();
    }
  }

  #sendHeld(): void {
    const held = this.#held;
    this.#held = [];
    for (const block of held) {
      this.#sendBlock(block.body(true));
    }
  }

  #sendBlock(body: Body, event = this.#options.events.next()): void {
    const { subscribers, deliveries, deliveredBlocks } = this.#options;
    deliveries.send(deliveredBlocks, () => body, beganBefore(event, subscribers.blocks));
  }

  #sendHash({ hashes }: SentTransactions, hash: string, event?: number): void {
    if (hashes.has(hash)) {
      return;
    }
    hashes.add(hash);
    const receivers = this.#options.subscribers.hashes;
    if (receivers.size > 0) {
      this.#send(formatJson(hash), receivers, event);
    }
  }

  /** Sends each transaction once. `format` returns `undefined` if the receipt is not known yet: a later call sends it. */
  #sendWhole(
    { whole }: SentTransactions,
    hash: string,
    format: () => FullTransaction | undefined,
    event?: number,
  ): void {
    if (whole.has(hash)) {
      return;
    }
    const wanted = this.#wantsWhole;
    const transaction = wanted ? format() : undefined;
    if (wanted && transaction === undefined) {
      return;
    }
    whole.add(hash);
    if (transaction) {
      this.#send(transaction.body, this.#receiversOf(transaction.logs), event);
    }
  }

  *#receiversOf(logs: readonly MatchedLog[]): Generator<Subscription> {
    const { transactions, matching } = this.#options.subscribers;
    yield* transactions;
    const matched = new Set<Subscription>();
    for (const log of logs) {
      for (const subscription of matching.match(log)) {
        if (!matched.has(subscription)) {
          matched.add(subscription);
          yield subscription;
        }
      }
    }
  }

  #send(body: Body, receivers: Iterable<Subscription>, event = this.#options.events.next()): void {
    const { deliveries, deliveredTransactions } = this.#options;
    deliveries.send(deliveredTransactions, () => body, beganBefore(event, receivers));
  }
}
