import { LRUCache } from "lru-cache";
import { type BlockId, type Heads, isCanonicalIn } from "../core/heads.ts";
import type { RpcRequest, RpcResponse } from "../core/rpcSource.ts";
import { asBuffer } from "../json/jsonBytes.ts";

/** A `null` is cached until the head changes, but no longer than this. */
const ABSENT_MS = 1_000;
const MAX_ABSENT = 10_000;
/** A larger body is not searched for transaction hashes, because that would block the event loop. */
const MAX_LISTED_BYTES = 4 * 1024 * 1024;

const NULL: RpcResponse = Object.freeze({
  body: new TextEncoder().encode("null"),
  status: Object.freeze({ hit: "memory" }),
});

/**
 * The negative cache of one chain: `null` for a transaction or its receipt, so that polling wallets cost little.
 * It has no entry for a transaction that forebay forwarded in the last minute, or that a block of the view lists.
 * Hashes may be in any case.
 */
export class NegativeCache {
  /** The parameters of cached responses, by transaction. All of them are of one head. */
  readonly #absent = new LRUCache<string, Set<string>>({ max: MAX_ABSENT, ttl: ABSENT_MS, ttlResolution: 0 });
  readonly #sent = new ExpectedHashes<true>();
  readonly #sealed = new ExpectedHashes<BlockId>();
  #head: BlockId | undefined;
  /** The time of the first response at this head. */
  #headMs = 0;

  /** Returns the cached `null`. */
  get(request: RpcRequest, heads: Heads): RpcResponse | undefined {
    const isCached =
      this.#head?.hash === heads.latest.hash &&
      this.#absent.get(transactionHash(request))?.has(request.canonicalParams) === true;
    return isCached ? NULL : undefined;
  }

  /** Caches a `null`. Returns false if the transaction is expected to exist. */
  add(request: RpcRequest, heads: Heads): boolean {
    const hash = transactionHash(request);
    if (this.isExpected(hash, heads)) {
      return false;
    }
    const { latest } = heads;
    if (this.#head?.hash !== latest.hash) {
      if (latest.number < (this.#head?.number ?? 0n) && performance.now() - this.#headMs < ABSENT_MS) {
        // A late response to a request of an older view.
        return false;
      }
      this.#absent.clear();
      this.#head = { number: latest.number, hash: latest.hash };
      this.#headMs = performance.now();
    }
    const params = this.#absent.get(hash);
    // The oldest response sets the expiry of all. The others expire too early, which costs only a request.
    if (params === undefined) {
      this.#absent.set(hash, new Set([request.canonicalParams]));
    } else {
      params.add(request.canonicalParams);
    }
    return true;
  }

  /** Records that transactions exist: they were sent through forebay, or `block` lists them. Evicts their `null`. */
  expectTransactions(hashes: Iterable<string>, block?: BlockId): void {
    for (const each of hashes) {
      const hash = each.toLowerCase();
      if (block === undefined) {
        this.#sent.set(hash, true);
      } else {
        this.#sealed.set(hash, block);
      }
      this.#absent.delete(hash);
    }
  }

  /** Forgets that a block lists these transactions, because it does not. */
  unexpectSealed(hashes: Iterable<string>): void {
    for (const hash of hashes) {
      this.#sealed.delete(hash.toLowerCase());
    }
  }

  /** Records the transactions of a block, by its JSON text or that of its receipts or logs. */
  expectBlock(body: Uint8Array, block: BlockId): void {
    if (body.byteLength <= MAX_LISTED_BYTES) {
      this.expectTransactions(scanTransactionHashes(body), block);
    }
  }

  /** Whether a `null` for the transaction must be retried on another node. */
  isExpected(hash: string, heads: Heads): boolean {
    return this.#sent.get(hash.toLowerCase()) === true || this.isSealed(hash, heads);
  }

  /** Whether a block of the view lists the transaction. Then only a node without that block returns `null`. */
  isSealed(hash: string, heads: Heads): boolean {
    return this.blockOf(hash, heads) !== undefined;
  }

  /** Returns the block of the view that lists the transaction; undefined if none is known. */
  blockOf(hash: string, heads: Heads): BlockId | undefined {
    const block = this.#sealed.get(hash.toLowerCase());
    return block !== undefined && isCanonicalIn(heads, block) ? block : undefined;
  }
}

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

  delete(hash: string): void {
    this.#newer.delete(hash);
    this.#older.delete(hash);
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

/** Members with a transaction hash, in blocks with full transactions and in receipts. */
const MEMBERS = ['"hash":"0x', '"transactionHash":"0x'];
const LIST = '"transactions":["0x';
const DIGITS = 64;

/**
 * Scans the JSON text of a block or its receipts for transaction hashes. A hash is 64 digits after a known member.
 * The result may contain the block's own hash, which is harmless. It is incomplete for JSON with whitespace.
 */
export const scanTransactionHashes = (body: Uint8Array): Set<string> => {
  const bytes = asBuffer(body);
  const hashes = new Set<string>();
  const addAt = (start: number): number => {
    hashes.add(`0x${bytes.toString("latin1", start, start + DIGITS).toLowerCase()}`);
    return start + DIGITS;
  };
  for (const member of MEMBERS) {
    for (let at = bytes.indexOf(member); at >= 0; at = bytes.indexOf(member, at + member.length)) {
      addAt(at + member.length);
    }
  }
  let at = bytes.indexOf(LIST);
  if (at >= 0) {
    at = addAt(at + LIST.length);
    while (bytes.toString("latin1", at, at + 5) === '","0x') {
      at = addAt(at + 5);
    }
  }
  return hashes;
};
