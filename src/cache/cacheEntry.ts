import { hash } from "node:crypto";
import type { Grade } from "../core/grade.ts";
import type { BlockId, Heads } from "../core/heads.ts";
import { RETENTION, type RetentionClass } from "../core/retention.ts";
import type { RpcRequest } from "../core/rpcSource.ts";
import type { Hash } from "../ethereum/hex.ts";
import type { Awaitable } from "../jsonrpc/call.ts";
import type { QueueOwner } from "../limits/fairQueue.ts";

/** The node that stated a value which no hash proves. */
export interface ValueSource {
  readonly node: string;
  /** See `Node`. */
  readonly origin: string;
}

/** A cached response. */
export interface CacheEntry {
  /** UTF-8 JSON text of the result. */
  readonly body: Uint8Array;
  readonly block?: BlockId;
  /** Whether the block was final when the response was cached. */
  readonly isFinal: boolean;
  /** Milliseconds since 1970. */
  readonly storedAtMs: number;
  /** The node that stated the value. Undefined if a hash proves the value. */
  readonly source?: ValueSource | undefined;
  /** Whether a node of another origin has stated the same value. */
  readonly isAgreed?: boolean | undefined;
  /** How far the response was verified. Earlier versions have stored none. */
  readonly grade?: Grade | undefined;
}

/** A tier below the memory. A failure of any kind is a miss. */
export interface EntryStore {
  readonly name: "disk" | "redis";
  /** Returns an entry, or undefined after a short deadline. Never rejects. Default of `owner`: no client. */
  get(key: string, owner?: QueueOwner): Promise<CacheEntry | undefined>;
  /** Writes an entry in the background. A promise resolves when it is written, or cannot be. */
  set(key: string, entry: CacheEntry, seconds: number): Awaitable<void>;
  /** Removes an entry in the background. */
  delete(key: string): void;
}

/**
 * Whether a block is canonical in a view. The block ring decides for its own blocks.
 * A block below the ring is canonical if it was final when its response was cached.
 */
export const isCanonical = (block: BlockId, wasFinal: boolean, heads: Heads): boolean => {
  const canonicalBlock = heads.at(block.number);
  if (canonicalBlock !== undefined) {
    return canonicalBlock.hash === block.hash;
  }
  return wasFinal && heads.finalized !== undefined && block.number <= heads.finalized.number;
};

/** Whether an entry is valid. If only the response names its block, that must be canonical. Other keys contain the block. */
export const isValid = (entry: CacheEntry, retention: RetentionClass, heads: Heads): boolean =>
  RETENTION[retention].blockFrom === "request" ||
  (entry.block !== undefined && isCanonical(entry.block, entry.isFinal, heads));

/** Returns the time to live on disk and in Redis in seconds, or undefined if the entry is cached in memory only. */
export const storedSeconds = ({ isFinal }: CacheEntry, retention: RetentionClass): number | undefined => {
  const seconds = RETENTION[retention].storedSeconds;
  return isFinal ? seconds?.final : seconds?.recent;
};

/** Increased when the meaning of keys or the form of values changes, so that old entries are misses. */
const FORMAT_VERSION = 1;

/** Longer canonical params are replaced by their SHA-256, so that an attacker cannot make two keys collide. */
const MAX_PARAMS_LENGTH = 128;

/**
 * Creates the prefix of a chain's keys. The genesis hash separates a restarted devnet from the one before, and the configured name
 * a fork from its origin.
 */
export const createKeyPrefix = (name: string, chainId: bigint | number, genesisHash: Hash): string =>
  `forebay${FORMAT_VERSION}:${name}.${chainId}:${genesisHash.slice(2, 18).toLowerCase()}:`;

/** The prefix of one chain's keys. It changes if the chain is reset. */
export class ChainKeys {
  readonly #name: string;
  readonly #chain: { readonly genesis: { readonly chainId: bigint; readonly hash: Hash } };
  #hash: Hash | undefined;
  #prefix = "";

  constructor(name: string, chain: { readonly genesis: { readonly chainId: bigint; readonly hash: Hash } }) {
    this.#name = name;
    this.#chain = chain;
  }

  get prefix(): string {
    const { chainId, hash } = this.#chain.genesis;
    if (this.#hash !== hash) {
      this.#hash = hash;
      this.#prefix = createKeyPrefix(this.#name, chainId, hash);
    }
    return this.#prefix;
  }
}

/**
 * Creates the key of a request, or undefined if its response must not be cached. Different requests never share a key:
 * no part before the canonical params contains a colon, and `#` marks hashed params.
 */
export const requestKey = (
  prefix: string,
  request: Pick<RpcRequest, "retention" | "block" | "canonicalParams">,
  heads: Heads,
): string | undefined => {
  const anchor = RETENTION[request.retention].keyAnchor(request.block, heads);
  return anchor === undefined ? undefined : prefix + anchor + formatParams(request.canonicalParams);
};

const formatParams = (canonicalParams: string): string =>
  canonicalParams.length <= MAX_PARAMS_LENGTH ? `:${canonicalParams}` : `#${hash("sha256", canonicalParams, "hex")}`;
