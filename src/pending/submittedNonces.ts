import type { SharedValues } from "../core/sharedValues.ts";
import { type Address, type Hash, isHash } from "../ethereum/hex.ts";

interface SubmittedNoncesOptions {
  /** Reads transactions by hash, in order; `null` if no node has it. Rejects if no node answers. */
  readonly find: (hashes: readonly Hash[]) => Promise<readonly unknown[]>;
  /** Returns the number of the newest sealed block. */
  readonly head: () => bigint;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
  /** Called for each transaction that no node has any more. */
  readonly onDropped?: (sender: Address, nonce: bigint) => void;
}

interface Accepted {
  readonly hash: Hash;
  readonly acceptedAtMs: number;
  /** Consecutive reviews in which no node had the transaction. */
  misses: number;
}

const TTL_MS = 5 * 60_000;
const MAX_SENDERS = 20_000;
const MAX_OF_SENDER = 1_024;
const MAX_REVIEWED = 1_000;
/** A single miss may come from a machine behind the URL that has not received the transaction yet. */
const MAX_MISSES = 2;

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
  readonly #senders = new Map<Address, Map<bigint, Accepted>>();

  constructor(options: SubmittedNoncesOptions) {
    this.#options = options;
  }

  recordSubmitted(hash: Hash, sender: Address, nonce: bigint): void {
    const senders = this.#senders;
    const nonces = senders.get(sender) ?? new Map<bigint, Accepted>();
    senders.delete(sender);
    senders.set(sender, nonces);
    if (nonces.size < MAX_OF_SENDER) {
      nonces.set(nonce, { hash, acceptedAtMs: this.#options.now(), misses: 0 });
    }
    if (senders.size > MAX_SENDERS) {
      senders.delete(senders.keys().next().value ?? sender);
    }
  }

  /** Advances `nonce` past the sender's consecutive accepted transactions that begin with it. */
  advance(sender: Address, nonce: bigint): bigint {
    const nonces = this.#senders.get(sender);
    let next = nonce;
    while (nonces?.has(next)) {
      next++;
    }
    return next;
  }

  /** Removes sealed, dropped and old transactions. Must be called once a block. */
  async review(): Promise<void> {
    this.#removeOld();
    const reviewed = this.#listAccepted().slice(0, MAX_REVIEWED);
    if (reviewed.length === 0) {
      return;
    }
    const { find, head, onDropped } = this.#options;
    const transactions = await find(reviewed.map(({ accepted }) => accepted.hash));
    for (const [position, { sender, nonce, accepted }] of reviewed.entries()) {
      const transaction = transactions[position];
      accepted.misses = transaction === null ? accepted.misses + 1 : 0;
      const isDropped = accepted.misses >= MAX_MISSES;
      if (isDropped || isSealedBelow(transaction, head())) {
        this.#remove(sender, nonce, accepted.hash);
      }
      if (isDropped) {
        onDropped?.(sender, nonce);
      }
    }
  }

  #listAccepted(): { readonly sender: Address; readonly nonce: bigint; readonly accepted: Accepted }[] {
    return [...this.#senders].flatMap(([sender, nonces]) =>
      [...nonces].map(([nonce, accepted]) => ({ sender, nonce, accepted })),
    );
  }

  #removeOld(): void {
    const oldestMs = this.#options.now() - TTL_MS;
    for (const [sender, nonces] of this.#senders) {
      for (const [nonce, { hash, acceptedAtMs }] of nonces) {
        if (acceptedAtMs < oldestMs) {
          this.#remove(sender, nonce, hash);
        }
      }
    }
  }

  #remove(sender: Address, nonce: bigint, hash: Hash): void {
    const nonces = this.#senders.get(sender);
    // If another transaction has replaced this one, it stays.
    if (nonces?.get(nonce)?.hash !== hash) {
      return;
    }
    nonces.delete(nonce);
    if (nonces.size === 0) {
      this.#senders.delete(sender);
    }
  }
}

/** The lifetime of an accepted nonce (docs/answers.md, Blocks and pending). */
const TTL_SECONDS = 5 * 60;
/** Limit of the sequential reads of one request, for senders with many transactions. */
const MAX_READS = 64;
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

  recordSubmitted(hash: Hash, sender: Address, nonce: bigint): void {
    this.#local.recordSubmitted(hash, sender, nonce);
    this.#values.set(keyOf(sender, nonce), Buffer.from(hash), TTL_SECONDS);
  }

  /** Like `SubmittedNonces.advance`, with the transactions that other replicas have sent. */
  async advance(sender: Address, nonce: bigint): Promise<bigint> {
    let next = this.#local.advance(sender, nonce);
    for (let reads = 0; reads < MAX_READS; reads++) {
      const value = await this.#values.get(keyOf(sender, next));
      const hash = value && decoder.decode(value);
      if (!isHash(hash)) {
        break;
      }
      this.#local.recordSubmitted(hash, sender, next);
      next = this.#local.advance(sender, next);
    }
    return next;
  }

  /** Marks a transaction that no node has any more. */
  drop(sender: Address, nonce: bigint): void {
    this.#values.set(keyOf(sender, nonce), DROPPED, TTL_SECONDS);
  }
}
