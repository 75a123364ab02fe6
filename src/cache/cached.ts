import type { Heads } from "../core/heads.ts";
import { isNull } from "../core/isNull.ts";
import type { RequestContext, RetentionClass, RpcRequest, RpcResponse, RpcSource } from "../core/rpcSource.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { type CacheEntry, isCanonical, isShared, isValid, redisSeconds } from "./cacheEntry.ts";
import { requestKey } from "./cacheKey.ts";
import type { MemoryStore } from "./memoryStore.ts";
import type { NegativeCache } from "./negativeCache.ts";
import type { RedisStore } from "./redisStore.ts";
import { scanTransactionHashes } from "./scanTransactionHashes.ts";

export interface CachedOptions {
  /** Name of the chain, for metrics. */
  readonly chain: string;
  /** See `createKeyPrefix`. Read at every request: a chain may begin anew. */
  readonly prefix: string;
  readonly memory: MemoryStore;
  readonly redis?: RedisStore;
  readonly absent: NegativeCache;
  readonly telemetry: Telemetry;
}

/** A larger answer is not searched for its transactions: that would hold the event loop. */
const MAX_LISTED_BYTES = 4 * 1024 * 1024;

/** What is kept only if the answer is known to be of the block with the key's hash. */
const REQUIRES_VERIFICATION: ReadonlySet<RetentionClass> = new Set(["recent", "recentState"]);

/** Answers from memory, then from Redis, then from `source`, and keeps what may be kept. Architecture.md, idea 1. */
export const cached = (source: RpcSource, options: CachedOptions): RpcSource => {
  const { memory, redis, absent } = options;
  const count = createLookupCounters(options);
  const { cacheAgeSeconds } = options.telemetry.metrics;
  const observeAge = (entry: CacheEntry) => cacheAgeSeconds.observe((Date.now() - entry.storedAtMs) / 1000);

  const forward = async (
    question: RpcRequest,
    context: RequestContext,
    fwd: "bypass" | "method",
  ): Promise<RpcResponse> => {
    const answer = await source.request(question, context);
    return answer.status.hit === undefined ? { ...answer, status: { ...answer.status, fwd } } : answer;
  };

  const ask = async (key: string, question: RpcRequest, context: RequestContext): Promise<RpcResponse> => {
    const { retention } = question;
    const { heads } = context.view;
    if (!context.bypassCache && redis !== undefined && isShared(retention)) {
      const entry = await redis.get(key);
      if (entry !== undefined && isValid(entry, retention, heads)) {
        memory.set(key, entry);
        count(retention, "redis");
        observeAge(entry);
        return { body: entry.body, status: { hit: "redis" }, ...(entry.block && { block: entry.block }) };
      }
    }
    count(retention, context.bypassCache ? "bypass" : "miss");
    const answer = await source.request(expecting(question, heads), context);
    if (answer.status.hit !== undefined) return answer;
    const stored = keep(key, question, heads, answer);
    return { ...answer, status: { ...answer.status, fwd: context.bypassCache ? "request" : "miss", stored } };
  };

  /** A `null` for a transaction that exists is asked again. */
  const expecting = (question: RpcRequest, heads: Heads): RpcRequest => {
    const hash = String(question.params[0]);
    if (question.retention !== "byTransaction" || !absent.isExpected(hash, heads)) return question;
    return { ...question, nullIsError: true, isInKnownBlock: absent.isSealed(hash, heads) };
  };

  const keep = (key: string, question: RpcRequest, heads: Heads, answer: RpcResponse): boolean => {
    const { retention } = question;
    // `proven: false`: the node did not have the block, whatever it answered.
    if (!(answer.body instanceof Uint8Array) || answer.verified === false) return false;
    if (isNull(answer)) return retention === "byTransaction" && absent.add(question, heads);
    const entry = createEntry(question, heads, answer.body, answer);
    if (entry === undefined) return false;
    if (retention === "recent" && answer.block && listsTransactions(question, answer.body))
      absent.expectTransactions(scanTransactionHashes(answer.body), answer.block);
    const inMemory = memory.set(key, entry);
    const inRedis = redis !== undefined && isShared(retention);
    if (inRedis) redis.set(key, entry, redisSeconds(entry));
    if (inMemory || inRedis) options.telemetry.metrics.cacheStored.inc({ chain: options.chain, class: retention });
    return inMemory || inRedis;
  };

  return {
    request: (question, context) => {
      const { retention } = question;
      const { heads } = context.view;
      const key = requestKey(options.prefix, question, heads);
      if (key === undefined) return forward(question, context, retention === "never" ? "method" : "bypass");
      if (!context.bypassCache) {
        const kept = memory.get(key);
        if (kept !== undefined && isValid(kept, retention, heads)) {
          count(retention, "memory");
          observeAge(kept);
          return Promise.resolve(kept);
        }
        if (retention === "byTransaction") {
          const answer = absent.get(question, heads);
          if (answer !== undefined) {
            count(retention, "absent");
            return Promise.resolve(answer);
          }
        }
      }
      return ask(key, question, context);
    },
  };
};

/** The entry to keep, or undefined where the answer may not be kept. The key has been found with the same heads. */
const createEntry = (
  question: RpcRequest,
  heads: Heads,
  body: Uint8Array,
  answer: RpcResponse,
): CacheEntry | undefined => {
  const { retention } = question;
  if (REQUIRES_VERIFICATION.has(retention) && answer.verified !== true) return undefined;
  const storedAtMs = Date.now();
  if (retention !== "byTransaction") {
    const final = retention === "final" || retention === "byHash";
    return { body, ...(answer.block && { block: answer.block }), final, storedAtMs };
  }
  const { block } = answer;
  if (block === undefined || !isCanonical(block, true, heads)) return undefined;
  return { body, block, final: heads.finalized !== undefined && block.number <= heads.finalized.number, storedAtMs };
};

/** A block, its receipts or its logs: a node that is behind may still call their transactions absent. */
const listsTransactions = ({ blockField }: RpcRequest, body: Uint8Array): boolean =>
  (blockField === "hash" || blockField === "firstBlockHash") && body.byteLength <= MAX_LISTED_BYTES;

/** The counters with their labels already looked up: a memory hit should cost less than finding them. */
const createLookupCounters = ({ chain, telemetry }: CachedOptions) => {
  const counters = new Map<string, ReturnType<typeof telemetry.metrics.cacheLookups.labels>>();
  return (retention: RetentionClass, outcome: "memory" | "redis" | "absent" | "miss" | "bypass"): void => {
    const name = retention + outcome;
    let counter = counters.get(name);
    if (counter === undefined) {
      counter = telemetry.metrics.cacheLookups.labels({ chain, class: retention, outcome });
      counters.set(name, counter);
    }
    counter.inc();
  };
};
