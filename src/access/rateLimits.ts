import { setTimeout as sleep } from "node:timers/promises";
import type { Cluster, Redis } from "ioredis";
import { type RateLimiterAbstract, RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from "rate-limiter-flexible";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";

/** So many calls in so many seconds. */
export interface Limit {
  readonly calls: number;
  readonly seconds: number;
}

/** Who a limit is for. */
export type LimitedBy = "key" | "address";

export interface RateLimitsOptions {
  /** Shared by the replicas; without it each process counts for itself. */
  readonly redis?: { readonly client: Redis | Cluster; readonly timeoutMs: number };
  readonly telemetry: Pick<Telemetry, "log" | "metrics">;
}

export interface RateLimits {
  /** Counts one call. Rejects with RpcError (429) where the limit is used up. */
  take(by: LimitedBy, id: string, limit: Limit): Promise<void>;
}

/** After a failure the store is left alone for so long: calls must not queue up behind a Redis that hangs. */
const PAUSE_MS = 1_000;

const isUsedUp = (error: unknown): error is RateLimiterRes => error instanceof RateLimiterRes;

const limited = ({ calls, seconds }: Limit, { msBeforeNext }: RateLimiterRes): RpcError =>
  new RpcError(CODES.RATE_LIMITED, `rate limit exceeded: ${calls} calls in ${seconds} s`, {
    status: 429,
    retryAfterSeconds: Math.max(1, Math.ceil(msBeforeNext / 1000)),
  });

/** A store that fails limits nobody: what it should have counted is let through, and counted as a failure. */
export const createRateLimits = ({ redis, telemetry }: RateLimitsOptions): RateLimits => {
  const { log, metrics } = telemetry;
  const limiters = new Map<string, RateLimiterAbstract>();
  let pausedUntilMs = 0;
  let isFailing = false;

  const createLimiter = (name: string, { calls, seconds }: Limit): RateLimiterAbstract => {
    const options = { keyPrefix: `forebay:limit:${name}`, points: calls, duration: seconds };
    if (redis === undefined) return new RateLimiterMemory(options);
    return new RateLimiterRedis({
      ...options,
      storeClient: redis.client,
      rejectIfRedisNotReady: true,
      // A caller over his limit costs Redis nothing more until his time is over.
      inMemoryBlockOnConsumed: calls,
    });
  };
  const limiterOf = (by: LimitedBy, limit: Limit): RateLimiterAbstract => {
    const name = `${by}:${limit.calls}/${limit.seconds}`;
    const found = limiters.get(name) ?? createLimiter(name, limit);
    limiters.set(name, found);
    return found;
  };

  const failed = (err: unknown): void => {
    metrics.limiterFailures.inc();
    if (!isFailing) log.warn({ err }, "rate limits are not applied: their store failed");
    isFailing = true;
    pausedUntilMs = performance.now() + PAUSE_MS;
  };
  const worked = (): void => {
    if (isFailing) log.info("rate limits are applied again");
    isFailing = false;
  };

  const consume = async (limiter: RateLimiterAbstract, id: string): Promise<void> => {
    if (redis === undefined) {
      await limiter.consume(id);
      return;
    }
    const done = new AbortController();
    const late = sleep(redis.timeoutMs, undefined, { signal: done.signal }).then(() => {
      throw new Error(`Redis gave no answer within ${redis.timeoutMs} ms`);
    });
    try {
      await Promise.race([limiter.consume(id), late]);
    } finally {
      late.catch(() => {});
      done.abort();
    }
  };

  return {
    take: async (by, id, limit) => {
      if (performance.now() < pausedUntilMs) {
        metrics.limiterFailures.inc();
        return;
      }
      try {
        await consume(limiterOf(by, limit), id);
        worked();
      } catch (error) {
        if (!isUsedUp(error)) return failed(error);
        worked();
        throw limited(limit, error);
      }
    },
  };
};
