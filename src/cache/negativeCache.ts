import { LRUCache } from "lru-cache";
import type { BlockId, Heads } from "../core/heads.ts";
import type { RpcRequest, RpcResponse } from "../core/rpcSource.ts";

/** A `null` lives as long as the view, but no longer than this. */
const ABSENT_MS = 1_000;
const MAX_ABSENT = 10_000;

const NULL: RpcResponse = Object.freeze({
  body: new TextEncoder().encode("null"),
  status: Object.freeze({ hit: "memory" }),
});

/**
 * `null` for a transaction or its receipt, so that wallets that poll for one cost little. Nothing is said to be absent that was
 * sent through forebay in the last minute, or that a block of the view lists.
 */
export interface NegativeCache {
  get(question: RpcRequest, heads: Heads): RpcResponse | undefined;
  /** False where a `null` is not believed. */
  add(question: RpcRequest, heads: Heads): boolean;
  /** These transactions exist: they were sent through forebay, or that block lists them. Drops what says that they do not. */
  expectTransactions(hashes: Iterable<string>, block?: BlockId): void;
  /** Whether a `null` for that transaction should be asked again on another node. */
  isExpected(hash: string, heads: Heads): boolean;
  /** Whether a block of the view lists it: a `null` is then a machine's that has not got the block yet. */
  isSealed(hash: string, heads: Heads): boolean;
}

interface AbsentTransaction {
  /** The head of the view that the answers were given at. */
  readonly head: string;
  readonly paramsOfTransactions: Set<string>;
}

export const createNegativeCache = (): NegativeCache => {
  const absent = new LRUCache<string, AbsentTransaction>({ max: MAX_ABSENT, ttl: ABSENT_MS, ttlResolution: 0 });
  const sent = createExpected<true>();
  const sealed = createExpected<BlockId>();
  const isSealed = (hash: string, heads: Heads): boolean => {
    const block = sealed.get(hash);
    return block !== undefined && heads.at(block.number)?.hash === block.hash;
  };
  const isExpected = (hash: string, heads: Heads): boolean => sent.get(hash) === true || isSealed(hash, heads);

  return {
    get: (question, heads) => {
      const found = absent.get(transactionHash(question));
      return found?.head === heads.latest.hash && found.paramsOfTransactions.has(question.canonicalParams)
        ? NULL
        : undefined;
    },
    add: (question, heads) => {
      const hash = transactionHash(question);
      if (isExpected(hash, heads)) return false;
      const found = absent.get(hash);
      // The oldest answer decides how long all of them live: that errs on the side of asking.
      if (found?.head === heads.latest.hash) found.paramsOfTransactions.add(question.canonicalParams);
      else absent.set(hash, { head: heads.latest.hash, paramsOfTransactions: new Set([question.canonicalParams]) });
      return true;
    },
    expectTransactions: (hashes, block) => {
      for (const each of hashes) {
        const hash = each.toLowerCase();
        if (block === undefined) sent.set(hash, true);
        else sealed.set(hash, block);
        absent.delete(hash);
      }
    },
    isExpected: (hash, heads) => isExpected(hash.toLowerCase(), heads),
    isSealed: (hash, heads) => isSealed(hash.toLowerCase(), heads),
  };
};

/** Every method that is asked by transaction takes its hash first. */
const transactionHash = (question: RpcRequest): string => String(question.params[0]).toLowerCase();

/** So long, and at most twice as long, a node that has not yet heard of a transaction is not believed when forebay has. */
const EXPECTED_MS = 60_000;
const MAX_EXPECTED = 50_000;

/** Two maps that take turns: cheaper than a time for each of many hashes. */
const createExpected = <V>() => {
  let newer = new Map<string, V>();
  let older = new Map<string, V>();
  let sinceMs = performance.now();
  const turn = () => {
    const ageMs = performance.now() - sinceMs;
    if (ageMs < EXPECTED_MS && newer.size < MAX_EXPECTED) return;
    older = ageMs < 2 * EXPECTED_MS ? newer : new Map();
    newer = new Map();
    sinceMs = performance.now();
  };
  return {
    set: (hash: string, value: V): void => {
      turn();
      newer.set(hash, value);
    },
    get: (hash: string): V | undefined => {
      turn();
      return newer.get(hash) ?? older.get(hash);
    },
  };
};
