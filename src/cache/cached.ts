import type { Heads } from "../core/heads.ts";
import { isNull } from "../core/isNull.ts";
import type { Answer, CallContext, Lifetime, Question, Source } from "../core/source.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { Absent } from "./absent.ts";
import { type Entry, isCanonical, isShared, isTrue, redisSeconds } from "./entry.ts";
import { questionKey } from "./key.ts";
import { listedTransactions } from "./listedTransactions.ts";
import type { Memory } from "./memory.ts";
import type { Redis } from "./redis.ts";

export interface CachedOptions {
  /** Name of the chain, for metrics. */
  readonly chain: string;
  /** See `createKeyPrefix`. Read at every request: a chain may begin anew. */
  readonly prefix: string;
  readonly memory: Memory;
  readonly redis?: Redis;
  readonly absent: Absent;
  readonly telemetry: Telemetry;
}

/** A larger answer is not searched for its transactions: that would hold the event loop. */
const MAX_LISTED_BYTES = 4 * 1024 * 1024;

/** What is kept only if the answer is known to be of the block with the key's hash. */
const NEEDS_PROOF: ReadonlySet<Lifetime> = new Set(["recent", "recentState"]);

/** Answers from memory, then from Redis, then from `source`, and keeps what may be kept. Architecture.md, idea 1. */
export const cached = (source: Source, options: CachedOptions): Source => {
  const { memory, redis, absent } = options;
  const count = createLookupCounters(options);
  const { cacheAgeSeconds } = options.telemetry.metrics;
  const observeAge = (entry: Entry) => cacheAgeSeconds.observe((Date.now() - entry.storedAtMs) / 1000);

  const forward = async (question: Question, context: CallContext, fwd: "bypass" | "method"): Promise<Answer> => {
    const answer = await source.request(question, context);
    return answer.status.hit === undefined ? { ...answer, status: { ...answer.status, fwd } } : answer;
  };

  const ask = async (key: string, question: Question, context: CallContext): Promise<Answer> => {
    const { lifetime } = question;
    const { heads } = context.view;
    if (!context.fresh && redis !== undefined && isShared(lifetime)) {
      const entry = await redis.get(key);
      if (entry !== undefined && isTrue(entry, lifetime, heads)) {
        memory.set(key, entry);
        count(lifetime, "redis");
        observeAge(entry);
        return { body: entry.body, status: { hit: "redis" }, ...(entry.block && { block: entry.block }) };
      }
    }
    count(lifetime, context.fresh ? "bypass" : "miss");
    const answer = await source.request(expecting(question, heads), context);
    if (answer.status.hit !== undefined) return answer;
    const stored = keep(key, question, heads, answer);
    return { ...answer, status: { ...answer.status, fwd: context.fresh ? "request" : "miss", stored } };
  };

  /** A `null` for a transaction that exists is asked again. */
  const expecting = (question: Question, heads: Heads): Question => {
    const hash = String(question.params[0]);
    if (question.lifetime !== "byTransaction" || !absent.isExpected(hash, heads)) return question;
    return { ...question, mustExist: true, isSealed: absent.isSealed(hash, heads) };
  };

  const keep = (key: string, question: Question, heads: Heads, answer: Answer): boolean => {
    const { lifetime } = question;
    // `proven: false`: the node did not have the block, whatever it answered.
    if (!(answer.body instanceof Uint8Array) || answer.proven === false) return false;
    if (isNull(answer)) return lifetime === "byTransaction" && absent.add(question, heads);
    const entry = createEntry(question, heads, answer.body, answer);
    if (entry === undefined) return false;
    if (lifetime === "recent" && answer.block && tellsTransactions(question, answer.body))
      absent.expect(listedTransactions(answer.body), answer.block);
    const inMemory = memory.set(key, entry);
    const inRedis = redis !== undefined && isShared(lifetime);
    if (inRedis) redis.set(key, entry, redisSeconds(entry));
    if (inMemory || inRedis) options.telemetry.metrics.cacheStored.inc({ chain: options.chain, class: lifetime });
    return inMemory || inRedis;
  };

  return {
    request: (question, context) => {
      const { lifetime } = question;
      const { heads } = context.view;
      const key = questionKey(options.prefix, question, heads);
      if (key === undefined) return forward(question, context, lifetime === "never" ? "method" : "bypass");
      if (!context.fresh) {
        const kept = memory.get(key);
        if (kept !== undefined && isTrue(kept, lifetime, heads)) {
          count(lifetime, "memory");
          observeAge(kept);
          return Promise.resolve(kept);
        }
        if (lifetime === "byTransaction") {
          const answer = absent.get(question, heads);
          if (answer !== undefined) {
            count(lifetime, "absent");
            return Promise.resolve(answer);
          }
        }
      }
      return ask(key, question, context);
    },
  };
};

/** The entry to keep, or undefined where the answer may not be kept. The key has been found with the same heads. */
const createEntry = (question: Question, heads: Heads, body: Uint8Array, answer: Answer): Entry | undefined => {
  const { lifetime } = question;
  if (NEEDS_PROOF.has(lifetime) && answer.proven !== true) return undefined;
  const storedAtMs = Date.now();
  if (lifetime !== "byTransaction") {
    const final = lifetime === "final" || lifetime === "byHash";
    return { body, ...(answer.block && { block: answer.block }), final, storedAtMs };
  }
  const { block } = answer;
  if (block === undefined || !isCanonical(block, true, heads)) return undefined;
  return { body, block, final: heads.finalized !== undefined && block.number <= heads.finalized.number, storedAtMs };
};

/** A block, its receipts or its logs: a node that is behind may still call their transactions absent. */
const tellsTransactions = ({ tells }: Question, body: Uint8Array): boolean =>
  (tells === "hash" || tells === "firstBlockHash") && body.byteLength <= MAX_LISTED_BYTES;

/** The counters with their labels already looked up: a memory hit should cost less than finding them. */
const createLookupCounters = ({ chain, telemetry }: CachedOptions) => {
  const counters = new Map<string, ReturnType<typeof telemetry.metrics.cacheLookups.labels>>();
  return (lifetime: Lifetime, outcome: "memory" | "redis" | "absent" | "miss" | "bypass"): void => {
    const name = lifetime + outcome;
    let counter = counters.get(name);
    if (counter === undefined) {
      counter = telemetry.metrics.cacheLookups.labels({ chain, class: lifetime, outcome });
      counters.set(name, counter);
    }
    counter.inc();
  };
};
