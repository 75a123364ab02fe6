import { LRUCache } from "lru-cache";
import type { BlockId, Heads } from "../core/heads.ts";
import type { RpcRequest, RpcResponse } from "../core/rpcSource.ts";

/** A `null` is cached until the head changes, but no longer than this. */
const ABSENT_MS = 1_000;
const MAX_ABSENT = 10_000;

const NULL: RpcResponse = Object.freeze({
  body: new TextEncoder().encode("null"),
  status: Object.freeze({ hit: "memory" }),
});

/**
 * The negative cache: `null` for a transaction or its receipt, so that polling wallets cost little.
 * It has no entry for a transaction that forebay forwarded in the last minute, or that a block of the view lists.
 */
export interface NegativeCache {
  /** Returns the cached `null`. */
  get(request: RpcRequest, heads: Heads): RpcResponse | undefined;
  /** Caches a `null`. Returns false if the transaction is expected to exist. */
  add(request: RpcRequest, heads: Heads): boolean;
  /** Records that transactions exist: they were sent through forebay, or `block` lists them. Evicts their `null`. */
  expectTransactions(hashes: Iterable<string>, block?: BlockId): void;
  /** Whether a `null` for the transaction must be retried on another node. */
  isExpected(hash: string, heads: Heads): boolean;
  /** Whether a block of the view lists the transaction. Then only a node without that block returns `null`. */
  isSealed(hash: string, heads: Heads): boolean;
  /** Returns the block of the view that lists the transaction; undefined if none is known. */
  blockOf(hash: string, heads: Heads): BlockId | undefined;
}

/** Creates the negative cache of one chain. Hashes may be in any case. */
export const createNegativeCache = (): NegativeCache => {
  /** The parameters of cached responses, by transaction. All of them are of one head. */
  const absent = new LRUCache<string, Set<string>>({ max: MAX_ABSENT, ttl: ABSENT_MS, ttlResolution: 0 });
  let head: string | undefined;
  let headNumber = 0n;
  /** The time of the first response at this head. */
  let headMs = 0;
  const sent = new ExpectedHashes<true>();
  const sealed = new ExpectedHashes<BlockId>();
  const blockOf = (hash: string, heads: Heads): BlockId | undefined => {
    const block = sealed.get(hash);
    return block !== undefined && heads.at(block.number)?.hash === block.hash ? block : undefined;
  };
  const isSealed = (hash: string, heads: Heads): boolean => blockOf(hash, heads) !== undefined;
  const isExpected = (hash: string, heads: Heads): boolean => sent.get(hash) === true || isSealed(hash, heads);

  return {
    get: (request, heads) =>
      head === heads.latest.hash && absent.get(transactionHash(request))?.has(request.canonicalParams) === true
        ? NULL
        : undefined,
    add: (request, heads) => {
      const hash = transactionHash(request);
      if (isExpected(hash, heads)) {
        return false;
      }
      const { number, hash: latest } = heads.latest;
      if (head !== latest) {
        if (number < headNumber && performance.now() - headMs < ABSENT_MS) {
          // A late response to a request of an older view.
          return false;
        }
        absent.clear();
        head = latest;
        headNumber = number;
        headMs = performance.now();
      }
      const params = absent.get(hash);
      // The oldest response sets the expiry of all. The others expire too early, which costs only a request.
      if (params === undefined) {
        absent.set(hash, new Set([request.canonicalParams]));
      } else {
        params.add(request.canonicalParams);
      }
      return true;
    },
    expectTransactions: (hashes, block) => {
      for (const each of hashes) {
        const hash = each.toLowerCase();
        if (block === undefined) {
          sent.set(hash, true);
        } else {
          sealed.set(hash, block);
        }
        absent.delete(hash);
      }
    },
    isExpected: (hash, heads) => isExpected(hash.toLowerCase(), heads),
    isSealed: (hash, heads) => isSealed(hash.toLowerCase(), heads),
    blockOf: (hash, heads) => blockOf(hash.toLowerCase(), heads),
  };
};

/** The transaction hash is the first parameter of all methods by transaction. */
const transactionHash = (request: RpcRequest): string => String(request.params[0]).toLowerCase();

/** Ignore a node's `null` for a transaction for 1 to 2 times this time after forebay learned of it. */
const EXPECTED_MS = 60_000;
const MAX_EXPECTED = 50_000;

/** Values by hash. Two maps rotate: that is cheaper than an expiry time for each of many hashes. */
class ExpectedHashes<V> {
  #newer = new Map<string, V>();
  #older = new Map<string, V>();
  #sinceMs = performance.now();

  set(hash: string, value: V): void {
    this.#rotate();
    this.#newer.set(hash, value);
  }

  get(hash: string): V | undefined {
    this.#rotate();
    return this.#newer.get(hash) ?? this.#older.get(hash);
  }

  #rotate(): void {
    const ageMs = performance.now() - this.#sinceMs;
    if (ageMs < EXPECTED_MS && this.#newer.size < MAX_EXPECTED) {
      return;
    }
    this.#older = ageMs < 2 * EXPECTED_MS ? this.#newer : new Map();
    this.#newer = new Map();
    this.#sinceMs = performance.now();
  }
}
