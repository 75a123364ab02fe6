import type { SharedValues } from "../core/sharedValues.ts";
import { larger, smaller } from "../ethereum/bigintOrder.ts";
import { type Address, type Hash, isHash } from "../ethereum/hex.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import { resultWithin } from "../state/writeSetWaits.ts";

interface SubmittedNoncesOptions {
  /** Reads transactions by hash, in order; `null` if no node has it. Rejects if no node answers. */
  readonly find: (hashes: readonly Hash[]) => Promise<readonly unknown[]>;
  /** Returns the number of the newest sealed block. */
  readonly head: () => bigint;
  /** Milliseconds of a monotonic clock. */
  readonly nowMs: () => number;
  /** Called for each transaction that no node has any more. */
  readonly onDropped?: (sender: Address, nonce: bigint) => void;
}

interface Accepted {
  readonly sender: Address;
  readonly nonce: bigint;
  readonly hash: Hash;
  readonly acceptedAtMs: number;
  /** The newest sealed block then. */
  readonly acceptedAt: bigint;
  /** Consecutive reviews in which no node had the transaction. */
  misses: number;
}

/** The accepted transactions of one sender. */
interface Sender {
  readonly nonces: Map<bigint, Accepted>;
  /** The highest nonce that was removed because there were more than MAX_OF_SENDER. */
  removed: { readonly nonce: bigint; readonly atMs: number } | undefined;
}

/** The lifetime of an accepted nonce (docs/answers.md, Blocks and pending). */
const TTL_MS = 5 * 60_000;
const TTL_SECONDS = TTL_MS / 1_000;
const MAX_SENDERS = 20_000;
const MAX_OF_SENDER = 1_024;
/** Most transactions are sealed before, so no node is asked for them. A transaction is reviewed after either. */
const REVIEWED_AFTER_BLOCKS = 10n;
const REVIEWED_AFTER_MS = 30_000;
const MAX_REVIEWED = 20;
/** Misses may come from machines behind the URL that have not received the transaction yet. */
const MAX_MISSES = 8;

const tooMany = (sender: Address): RpcError =>
  new RpcError(CODES.SERVER, `the nonce of ${sender} is not known: more than ${MAX_OF_SENDER} transactions wait`);

/** Whether the transaction is sealed below the head. One in the head still counts: the view's base may be the parent block. */
const isSealedBelow = (transaction: unknown, head: bigint): boolean =>
  typeof transaction === "object" &&
  transaction !== null &&
  "blockNumber" in transaction &&
  typeof transaction.blockNumber === "string" &&
  BigInt(transaction.blockNumber) < head;

/** Nonces of transactions that a node accepted through forebay and that may not be in a block yet. Each expires after 5 minutes. */
export class SubmittedNonces {
  readonly #options: SubmittedNoncesOptions;
  /** In order of last use: the first sender is evicted first. */
  readonly #senders = new Map<Address, Sender>();
  /** All transactions, those that were not reviewed for the longest time first. It may contain removed ones until the next review. */
  #queue: Accepted[] = [];

  constructor(options: SubmittedNoncesOptions) {
    this.#options = options;
  }

  recordSubmitted(hash: Hash, sender: Address, nonce: bigint): void {
    const { head, nowMs } = this.#options;
    const senders = this.#senders;
    const known = senders.get(sender) ?? { nonces: new Map<bigint, Accepted>(), removed: undefined };
    senders.delete(sender);
    senders.set(sender, known);
    const accepted = { sender, nonce, hash, acceptedAtMs: nowMs(), acceptedAt: head(), misses: 0 };
    known.nonces.set(nonce, accepted);
    this.#queue.push(accepted);
    if (known.nonces.size > MAX_OF_SENDER) {
      this.#removeLowest(known);
    }
    if (senders.size > MAX_SENDERS) {
      senders.delete(senders.keys().next().value ?? sender);
    }
  }

  /**
   * Advances `nonce` past the sender's consecutive accepted transactions that begin with it. Throws RpcError if some of them are
   * no longer known.
   */
  advance(sender: Address, nonce: bigint): bigint {
    const known = this.#senders.get(sender);
    const removed = known?.removed;
    if (removed !== undefined && nonce <= removed.nonce && removed.atMs >= this.#oldestMs) {
      throw tooMany(sender);
    }
    let next = nonce;
    while (known?.nonces.has(next)) {
      next++;
    }
    return next;
  }

  /** Removes sealed, dropped and old transactions. Must be called once a block. */
  async review(): Promise<void> {
    const { find, head, onDropped } = this.#options;
    const reviewed = this.#takeDue();
    if (reviewed.length === 0) {
      return;
    }
    // Meanwhile they are reviewed by nobody else. If no node answers, the next review repeats it.
    const transactions = await find(reviewed.map(({ hash }) => hash)).finally(() => this.#queue.push(...reviewed));
    for (const [position, accepted] of reviewed.entries()) {
      const transaction = transactions[position];
      accepted.misses = transaction === null ? accepted.misses + 1 : 0;
      const isDropped = accepted.misses >= MAX_MISSES;
      if (isDropped || isSealedBelow(transaction, head())) {
        this.#remove(accepted);
      }
      if (isDropped) {
        onDropped?.(accepted.sender, accepted.nonce);
      }
    }
  }

  get #oldestMs(): number {
    return this.#options.nowMs() - TTL_MS;
  }

  /** Takes transactions for one review from the queue. Removes those that are too old. */
  #takeDue(): readonly Accepted[] {
    const { head, nowMs } = this.#options;
    const oldestMs = this.#oldestMs;
    const due: Accepted[] = [];
    const others: Accepted[] = [];
    for (const accepted of this.#queue) {
      const { acceptedAtMs, acceptedAt } = accepted;
      const isDue = acceptedAtMs <= nowMs() - REVIEWED_AFTER_MS || acceptedAt <= head() - REVIEWED_AFTER_BLOCKS;
      if (acceptedAtMs < oldestMs) {
        this.#remove(accepted);
      } else if (this.#isCurrent(accepted)) {
        (isDue && due.length < MAX_REVIEWED ? due : others).push(accepted);
      }
    }
    this.#queue = others;
    return due;
  }

  /** Whether no other transaction has replaced this one, and it was not removed. */
  #isCurrent(accepted: Accepted): boolean {
    return this.#senders.get(accepted.sender)?.nonces.get(accepted.nonce) === accepted;
  }

  #remove(accepted: Accepted): void {
    const { sender, nonce } = accepted;
    if (!this.#isCurrent(accepted)) {
      return;
    }
    const nonces = this.#senders.get(sender)?.nonces;
    nonces?.delete(nonce);
    if (nonces?.size === 0) {
      this.#senders.delete(sender);
    }
  }

  /** The lowest nonce is sealed first. */
  #removeLowest(known: Sender): void {
    const { nonces, removed } = known;
    const lowest = [...nonces.keys()].reduce(smaller);
    nonces.delete(lowest);
    known.removed = { nonce: larger(lowest, removed?.nonce ?? lowest), atMs: this.#options.nowMs() };
  }
}

/** Nonces that are read at once. Few senders have more than one transaction in flight. */
const MAX_READS_AT_ONCE = 64;
/** The longest time that a send waits for Redis. */
const WRITE_MS = 50;
const DROPPED = Buffer.from("dropped");

const decoder = new TextDecoder();
const keyOf = (sender: Address, nonce: bigint): string => `accepted:${sender.toLowerCase()}:${nonce}`;

/**
 * The accepted nonces of all replicas. Each nonce has a key of its own, so that replicas do not overwrite each other.
 * A dropped transaction is overwritten instead of deleted, because a replica would otherwise add it again.
 */
export class SharedNonces {
  readonly #local: SubmittedNonces;
  readonly #values: SharedValues;

  constructor(local: SubmittedNonces, values: SharedValues) {
    this.#local = local;
    this.#values = values;
  }

  /** Resolves when other replicas can read it, or after WRITE_MS. */
  async recordSubmitted(hash: Hash, sender: Address, nonce: bigint): Promise<void> {
    this.#local.recordSubmitted(hash, sender, nonce);
    await resultWithin(this.#values.set(keyOf(sender, nonce), Buffer.from(hash), TTL_SECONDS), WRITE_MS);
  }

  /** Like `SubmittedNonces.advance`, with the transactions that other replicas have sent. */
  async advance(sender: Address, nonce: bigint): Promise<bigint> {
    let next = this.#local.advance(sender, nonce);
    let count = 1;
    for (let reads = 0; reads < MAX_OF_SENDER; reads += count) {
      count = Math.min(Math.max(2 * reads, 1), MAX_READS_AT_ONCE);
      const found = await this.#read(sender, next, count);
      for (const [offset, hash] of found.entries()) {
        this.#local.recordSubmitted(hash, sender, next + BigInt(offset));
      }
      const end = next + BigInt(found.length);
      next = this.#local.advance(sender, nonce);
      if (found.length < count && next === end) {
        return next;
      }
    }
    throw tooMany(sender);
  }

  /** Reads the sender's consecutive transactions from a nonce on, at most `count`. */
  async #read(sender: Address, first: bigint, count: number): Promise<readonly Hash[]> {
    const nonces = Array.from({ length: count }, (_, offset) => first + BigInt(offset));
    const values = await Promise.all(nonces.map((nonce) => this.#values.get(keyOf(sender, nonce))));
    const hashes = values.map((value) => value && decoder.decode(value));
    const end = hashes.findIndex((hash) => !isHash(hash));
    return hashes.slice(0, end < 0 ? count : end).filter(isHash);
  }

  /** Marks a transaction that no node has any more. */
  drop(sender: Address, nonce: bigint): void {
    this.#values.set(keyOf(sender, nonce), DROPPED, TTL_SECONDS);
  }
}
