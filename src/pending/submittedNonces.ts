import type { SharedValues } from "../core/sharedValues.ts";
import { type Address, type Hash, isHash } from "../ethereum/hex.ts";

interface AcceptedNoncesOptions {
  /** Reads transactions by hash, in order; `null` if no node has it. Rejects if no node answers. */
  readonly find: (hashes: readonly Hash[]) => Promise<readonly unknown[]>;
  /** Returns the number of the newest sealed block. */
  readonly head: () => bigint;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
  /** Called for each transaction that no node has any more. */
  readonly onDropped?: (sender: Address, nonce: bigint) => void;
}

/** Nonces of transactions that a node accepted through forebay and that may not be in a block yet. */
interface SubmittedNonces {
  recordSubmitted(hash: Hash, sender: Address, nonce: bigint): void;
  /** Advances `nonce` past the sender's consecutive accepted transactions that begin with it. */
  advance(sender: Address, nonce: bigint): bigint;
  /** Removes sealed, dropped and old transactions. Must be called once a block. */
  review(): Promise<void>;
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

/** Creates the record of accepted transactions by sender and nonce. Each entry expires after 5 minutes. */
export const createSubmittedNonces = ({ find, head, now, onDropped }: AcceptedNoncesOptions): SubmittedNonces => {
  // In order of last use: the first sender is evicted first.
  const senders = new Map<Address, Map<bigint, Accepted>>();

  const remove = (sender: Address, nonce: bigint, hash?: Hash): void => {
    const nonces = senders.get(sender);
    // If another transaction has replaced this one, it stays.
    if (!nonces || (hash !== undefined && nonces.get(nonce)?.hash !== hash)) {
      return;
    }
    nonces.delete(nonce);
    if (nonces.size === 0) {
      senders.delete(sender);
    }
  };

  const removeOld = (): void => {
    const oldestMs = now() - TTL_MS;
    for (const [sender, nonces] of senders) {
      for (const [nonce, { acceptedAtMs }] of nonces) {
        if (acceptedAtMs < oldestMs) {
          remove(sender, nonce);
        }
      }
    }
  };

  const listAccepted = () =>
    [...senders].flatMap(([sender, nonces]) => [...nonces].map(([nonce, accepted]) => ({ sender, nonce, accepted })));

  return {
    recordSubmitted: (hash, sender, nonce) => {
      const nonces = senders.get(sender) ?? new Map<bigint, Accepted>();
      senders.delete(sender);
      senders.set(sender, nonces);
      if (nonces.size < MAX_OF_SENDER) {
        nonces.set(nonce, { hash, acceptedAtMs: now(), misses: 0 });
      }
      if (senders.size > MAX_SENDERS) {
        senders.delete(senders.keys().next().value ?? sender);
      }
    },
    advance: (sender, nonce) => {
      const nonces = senders.get(sender);
      if (!nonces) {
        return nonce;
      }
      let next = nonce;
      while (nonces.has(next)) {
        next++;
      }
      return next;
    },
    review: async () => {
      removeOld();
      const reviewed = listAccepted().slice(0, MAX_REVIEWED);
      if (reviewed.length === 0) {
        return;
      }
      const transactions = await find(reviewed.map(({ accepted }) => accepted.hash));
      for (const [position, { sender, nonce, accepted }] of reviewed.entries()) {
        const transaction = transactions[position];
        accepted.misses = transaction === null ? accepted.misses + 1 : 0;
        const isDropped = accepted.misses >= MAX_MISSES;
        if (isDropped || isSealedBelow(transaction, head())) {
          remove(sender, nonce, accepted.hash);
        }
        if (isDropped) {
          onDropped?.(sender, nonce);
        }
      }
    },
  };
};

/** Accepted nonces of all replicas. */
interface SharedNonces {
  recordSubmitted(hash: Hash, sender: Address, nonce: bigint): void;
  /** Like `AcceptedNonces.raise`, with the transactions that other replicas have sent. */
  advance(sender: Address, nonce: bigint): Promise<bigint>;
  /** Marks a transaction that no node has any more. */
  drop(sender: Address, nonce: bigint): void;
}

/** The lifetime of an accepted nonce (docs/answers.md, Blocks and pending). */
const TTL_SECONDS = 5 * 60;
/** Limit of the sequential reads of one request, for senders with many transactions. */
const MAX_READS = 64;
const DROPPED = Buffer.from("dropped");

const decoder = new TextDecoder();
const keyOf = (sender: Address, nonce: bigint): string => `accepted:${sender.toLowerCase()}:${nonce}`;

/**
 * Creates the nonces that replicas share. Each nonce has a key of its own, so that replicas do not overwrite each other.
 * A dropped transaction is overwritten instead of deleted, because a replica would otherwise add it again.
 */
export const createSharedNonces = (nonces: SubmittedNonces, values: SharedValues): SharedNonces => ({
  recordSubmitted: (hash, sender, nonce) => {
    nonces.recordSubmitted(hash, sender, nonce);
    values.set(keyOf(sender, nonce), Buffer.from(hash), TTL_SECONDS);
  },
  advance: async (sender, nonce) => {
    let next = nonces.advance(sender, nonce);
    for (let reads = 0; reads < MAX_READS; reads++) {
      const value = await values.get(keyOf(sender, next));
      const hash = value && decoder.decode(value);
      if (!isHash(hash)) {
        break;
      }
      nonces.recordSubmitted(hash, sender, next);
      next = nonces.advance(sender, next);
    }
    return next;
  },
  drop: (sender, nonce) => values.set(keyOf(sender, nonce), DROPPED, TTL_SECONDS),
});
