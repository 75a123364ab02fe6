import type { SharedValues } from "../core/sharedValues.ts";
import { type Address, type Hash, isHash } from "../ethereum/hex.ts";
import type { SubmittedNonces } from "./submittedNonces.ts";

/** Accepted nonces of all replicas. */
export interface SharedNonces {
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
