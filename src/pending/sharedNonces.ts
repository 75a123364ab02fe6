import { type Address, type Hash, isHash } from "../ethereum/hex.ts";
import type { SubmittedNonces } from "./submittedNonces.ts";

/** What replicas tell each other for a while. */
export interface SharedValues {
  /** Never rejects, and soon undefined where nobody can be asked. */
  get(key: string): Promise<Uint8Array | undefined>;
  /** Returns at once. */
  set(key: string, bytes: Uint8Array, seconds: number): void;
}

/** The accepted nonces of all replicas. */
export interface SharedNonces {
  recordSubmitted(hash: Hash, sender: Address, nonce: bigint): void;
  /** As `AcceptedNonces.raise`, with what other replicas have sent. */
  advance(sender: Address, nonce: bigint): Promise<bigint>;
  /** No node knows this one any more. */
  drop(sender: Address, nonce: bigint): void;
}

/** As long as an accepted nonce counts (architecture.md, table of answers). */
const KEPT_SECONDS = 5 * 60;
/** Read one after the other, so that a sender of very many costs a question no more than so much. */
const MAX_LEARNED = 64;
const DROPPED = Buffer.from("dropped");

const decoder = new TextDecoder();
const keyOf = (sender: Address, nonce: bigint): string => `accepted:${sender.toLowerCase()}:${nonce}`;

/** One value a nonce, so that replicas never write over each other's; what was dropped is overwritten, as it would be learned again. */
export const createSharedNonces = (nonces: SubmittedNonces, values: SharedValues): SharedNonces => ({
  recordSubmitted: (hash, sender, nonce) => {
    nonces.recordSubmitted(hash, sender, nonce);
    values.set(keyOf(sender, nonce), Buffer.from(hash), KEPT_SECONDS);
  },
  advance: async (sender, nonce) => {
    let next = nonces.advance(sender, nonce);
    for (let learned = 0; learned < MAX_LEARNED; learned++) {
      const value = await values.get(keyOf(sender, next));
      const hash = value && decoder.decode(value);
      if (!isHash(hash)) break;
      nonces.recordSubmitted(hash, sender, next);
      next = nonces.advance(sender, next);
    }
    return next;
  },
  drop: (sender, nonce) => values.set(keyOf(sender, nonce), DROPPED, KEPT_SECONDS),
});
