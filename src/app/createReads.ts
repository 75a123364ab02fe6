import { type Absent, createAbsent } from "../cache/absent.ts";
import { cached } from "../cache/cached.ts";
import { createKeyPrefix } from "../cache/key.ts";
import type { Memory } from "../cache/memory.ts";
import type { Redis } from "../cache/redis.ts";
import { createStore, type Store } from "../cache/store.ts";
import { warmed } from "../cache/warm.ts";
import type { ChainConfig } from "../config/config.ts";
import type { RunScript } from "../core/runScript.ts";
import type { Source } from "../core/source.ts";
import { type Hash, ZERO_HASH } from "../ethereum/hex.ts";
import { headQuestions } from "../methods/headQuestions.ts";
import { deduplicated } from "../nodes/deduplicated.ts";
import type { SharedValues } from "../pending/sharedNonces.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { Upstreams } from "./upstreams.ts";

/** The prefix of one chain's keys, made anew only where the chain began anew. */
const createPrefixes = () => {
  let last: { readonly hash: Hash; readonly prefix: string } = { hash: ZERO_HASH, prefix: "" };
  return ({ chainId, hash }: Upstreams["genesis"]): string => {
    if (last.hash !== hash) last = { hash, prefix: createKeyPrefix(chainId, hash) };
    return last.prefix;
  };
};

/** What keeps answers, of all chains. */
export interface Kept {
  readonly memory: Memory;
  readonly redis: Redis | undefined;
  readonly telemetry: Telemetry;
}

export interface Reads {
  /** Cache in front of shared requests in front of the nodes; a new head's answers are fetched ahead. */
  readonly reads: Source;
  /** For rooms that have their own rules of what is true. */
  readonly store: Store;
  readonly absent: Absent;
  /** Undefined where there is no Redis. */
  readonly sharedValues: SharedValues | undefined;
  /** Runs scripts on keys of this chain; undefined where there is no Redis. */
  readonly runScript: RunScript | undefined;
}

export const createReads = (config: ChainConfig, kept: Kept, upstreams: Upstreams, signal: AbortSignal): Reads => {
  const { memory, redis, telemetry } = kept;
  const prefixOf = createPrefixes();
  const absent = createAbsent();
  const keeping = {
    chain: config.name,
    get prefix() {
      return prefixOf(upstreams.genesis);
    },
    memory,
    absent,
    telemetry,
    ...(redis && { redis }),
  };
  const source = cached(deduplicated(upstreams), keeping);
  const reads = warmed(source, {
    questionsOf: headQuestions,
    contextOf: (heads) => ({
      view: { heads },
      signal,
      deadlineMs: performance.now() + config.upstream.timeoutMs,
      caller: "warm-up",
      fresh: false,
    }),
    log: telemetry.log,
  });
  upstreams.heads.subscribe(reads.onChange);
  const sharedValues = redis && {
    get: async (key: string) => (await redis.get(keeping.prefix + key))?.body,
    set: (key: string, body: Uint8Array, seconds: number) =>
      redis.set(keeping.prefix + key, { body, final: false, storedAtMs: Date.now() }, seconds),
  };
  const runScript: RunScript | undefined =
    redis && ((script, key, args) => redis.run(script, keeping.prefix + key, args));
  return { reads, store: createStore(keeping), absent, sharedValues, runScript };
};
