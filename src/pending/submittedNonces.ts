import type { Address, Hash } from "../ethereum/hex.ts";

export interface AcceptedNoncesOptions {
  /** These transactions as a node tells them now, in their order, `null` where none knows it; rejects if none could be asked. */
  readonly find: (hashes: readonly Hash[]) => Promise<readonly unknown[]>;
  /** Number of the newest sealed block. */
  readonly head: () => bigint;
  /** Milliseconds of a clock that does not go back. */
  readonly now: () => number;
  /** Told what no node knows any more. */
  readonly onDropped?: (sender: Address, nonce: bigint) => void;
}

/** Nonces of transactions that a node accepted through here and that may not be in any block yet. */
export interface SubmittedNonces {
  recordSubmitted(hash: Hash, sender: Address, nonce: bigint): void;
  /** `nonce` raised over the consecutive transactions of that sender that begin with it. */
  advance(sender: Address, nonce: bigint): bigint;
  /** To be called once a block: forgets what is sealed, what nodes dropped and what is too old. */
  review(): Promise<void>;
}

interface Accepted {
  readonly hash: Hash;
  readonly acceptedAtMs: number;
  /** Reviews in a row in which no node knew it. */
  misses: number;
}

const KEPT_MS = 5 * 60_000;
const MAX_SENDERS = 20_000;
const MAX_OF_SENDER = 1_024;
const MAX_ASKED = 1_000;
/** One miss may be a machine behind the node's address that it has not reached yet. */
const MAX_MISSES = 2;

/** Sealed in the head itself it still counts: the view's base may be the block before. */
const isSealedBelow = (transaction: unknown, head: bigint): boolean =>
  typeof transaction === "object" &&
  transaction !== null &&
  "blockNumber" in transaction &&
  typeof transaction.blockNumber === "string" &&
  BigInt(transaction.blockNumber) < head;

export const createSubmittedNonces = ({ find, head, now, onDropped }: AcceptedNoncesOptions): SubmittedNonces => {
  // In order of last use, so that the first is the one to drop.
  const senders = new Map<Address, Map<bigint, Accepted>>();

  const forget = (sender: Address, nonce: bigint, hash?: Hash): void => {
    const nonces = senders.get(sender);
    // Replaced meanwhile by another transaction with that nonce: it stays.
    if (!nonces || (hash !== undefined && nonces.get(nonce)?.hash !== hash)) return;
    nonces.delete(nonce);
    if (nonces.size === 0) senders.delete(sender);
  };

  const forgetOld = (): void => {
    const oldestMs = now() - KEPT_MS;
    for (const [sender, nonces] of senders) {
      for (const [nonce, { acceptedAtMs }] of nonces) if (acceptedAtMs < oldestMs) forget(sender, nonce);
    }
  };

  const list = () =>
    [...senders].flatMap(([sender, nonces]) => [...nonces].map(([nonce, accepted]) => ({ sender, nonce, accepted })));

  return {
    recordSubmitted: (hash, sender, nonce) => {
      const nonces = senders.get(sender) ?? new Map<bigint, Accepted>();
      senders.delete(sender);
      senders.set(sender, nonces);
      if (nonces.size < MAX_OF_SENDER) nonces.set(nonce, { hash, acceptedAtMs: now(), misses: 0 });
      if (senders.size > MAX_SENDERS) senders.delete(senders.keys().next().value ?? sender);
    },
    advance: (sender, nonce) => {
      const nonces = senders.get(sender);
      if (!nonces) return nonce;
      let next = nonce;
      while (nonces.has(next)) next++;
      return next;
    },
    review: async () => {
      forgetOld();
      const asked = list().slice(0, MAX_ASKED);
      if (asked.length === 0) return;
      const found = await find(asked.map(({ accepted }) => accepted.hash));
      for (const [position, { sender, nonce, accepted }] of asked.entries()) {
        const transaction = found[position];
        accepted.misses = transaction === null ? accepted.misses + 1 : 0;
        const isDropped = accepted.misses >= MAX_MISSES;
        if (isDropped || isSealedBelow(transaction, head())) forget(sender, nonce, accepted.hash);
        if (isDropped) onDropped?.(sender, nonce);
      }
    },
  };
};
