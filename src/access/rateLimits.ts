import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";
import type { Cluster, Redis } from "ioredis";
import type { RateLimiterAbstract, RateLimiterRes } from "rate-limiter-flexible";
import { errorText } from "../core/errorText.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";

const require = createRequire(import.meta.url);
/** Loaded with the first limited call. */
const loadLimiters = (): typeof import("rate-limiter-flexible") => require("rate-limiter-flexible");

/** A limit of calls in a window of seconds. */
export interface Limit {
  readonly calls: number;
  readonly seconds: number;
}

/** The limit of a key: calls in a window, units of a day, or both. */
export interface KeyLimit {
  readonly calls?: number | undefined;
  readonly seconds?: number | undefined;
  readonly unitsPerDay?: number | undefined;
}

export const DEFAULT_LIMIT: Limit = { calls: 100, seconds: 1 };

/** Returns the limit of calls. Undefined: the key has none of its own. */
export const callLimitOf = ({ calls, seconds, unitsPerDay }: KeyLimit): Limit | undefined =>
  unitsPerDay !== undefined && calls === undefined && seconds === undefined
    ? undefined
    : { calls: calls ?? DEFAULT_LIMIT.calls, seconds: seconds ?? DEFAULT_LIMIT.seconds };

/** The property of a request by which calls are counted. */
export type LimitedBy = "key" | "address";

export interface RateLimitsOptions {
  /** Replicas that share a Redis count together. Without it, each process counts alone. */
  readonly redis?: { readonly client: Redis | Cluster; readonly timeoutMs: number };
  readonly telemetry: Pick<Telemetry, "log" | "metrics">;
}

/** Pause after a failure of the store, so that calls do not queue behind a Redis that hangs. */
const PAUSE_MS = 1_000;

/** Redis did not respond before the deadline. */
class LateReply extends Error {
  override readonly name = "LateReply";
}

const isExceeded = (error: unknown): error is RateLimiterRes => error instanceof loadLimiters().RateLimiterRes;

/** Returns the error (429) of a call above its limit. */
const exceeded = ({ calls, seconds }: Limit, waitMs: number): RpcError =>
  new RpcError(CODES.RATE_LIMITED, `rate limit exceeded: ${calls} calls in ${seconds} s`, {
    status: 429,
    retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)),
  });

/** Limits of calls by key and by address, in Redis or in memory. A call is allowed if the store fails, and the failure is counted. */
export class RateLimits {
  readonly #redis: RateLimitsOptions["redis"];
  readonly #telemetry: RateLimitsOptions["telemetry"];
  readonly #limiters = new Map<string, RateLimiterAbstract>();
  #pausedUntilMs = 0;
  /** Pauses since the last success. */
  #pauses = 0;
  #isLogged = false;

  constructor({ redis, telemetry }: RateLimitsOptions) {
    this.#redis = redis;
    this.#telemetry = telemetry;
  }

  /** Counts calls, by default one. Rejects with RpcError (429) if the limit is exceeded. They are counted even then. */
  async take(by: LimitedBy, id: string, limit: Limit, calls = 1): Promise<void> {
    if (performance.now() < this.#pausedUntilMs) {
      this.#telemetry.metrics.limiterFailures.inc();
      return;
    }
    try {
      await this.#consume(this.#limiterOf(by, limit), id, calls);
      this.#recordSuccess();
    } catch (error) {
      if (!isExceeded(error)) {
        this.#recordFailure(error);
        return;
      }
      this.#recordSuccess();
      throw exceeded(limit, error.msBeforeNext);
    }
  }

  #limiterOf(by: LimitedBy, limit: Limit): RateLimiterAbstract {
    const name = `${by}:${limit.calls}/${limit.seconds}`;
    const limiter = this.#limiters.get(name) ?? this.#createLimiter(name, limit);
    this.#limiters.set(name, limiter);
    return limiter;
  }

  #createLimiter(name: string, { calls, seconds }: Limit): RateLimiterAbstract {
    const options = { keyPrefix: `forebay:limit:${name}`, points: calls, duration: seconds };
    const { RateLimiterMemory, RateLimiterRedis } = loadLimiters();
    if (this.#redis === undefined) {
      return new RateLimiterMemory(options);
    }
    return new RateLimiterRedis({
      ...options,
      storeClient: this.#redis.client,
      rejectIfRedisNotReady: true,
      // A client above its limit causes no more Redis commands until its window ends.
      inMemoryBlockOnConsumed: calls,
    });
  }

  async #consume(limiter: RateLimiterAbstract, id: string, calls: number): Promise<void> {
    if (this.#redis === undefined) {
      await limiter.consume(id, calls);
      return;
    }
    const { timeoutMs } = this.#redis;
    const done = new AbortController();
    const timeout = sleep(timeoutMs, undefined, { signal: done.signal }).then(() => {
      throw new LateReply(`Redis did not respond within ${timeoutMs} ms`);
    });
    try {
      await Promise.race([limiter.consume(id, calls), timeout]);
    } finally {
      // The abort below rejects the timeout, and nobody waits for it any more.
      timeout.catch(() => undefined);
      done.abort();
    }
  }

  #recordFailure(error: unknown): void {
    const { log, metrics } = this.#telemetry;
    metrics.limiterFailures.inc();
    const nowMs = performance.now();
    // Calls that were sent together fail together.
    if (nowMs >= this.#pausedUntilMs) {
      this.#pauses++;
      this.#pausedUntilMs = nowMs + PAUSE_MS;
    }
    // A reply that is late once is only counted.
    if (!this.#isLogged && (this.#pauses > 1 || !(error instanceof LateReply))) {
      this.#isLogged = true;
      const reason = errorText(error);
      log.warn({ reason }, "rate limits are not applied: their store failed");
    }
  }

  #recordSuccess(): void {
    this.#pauses = 0;
    if (this.#isLogged) {
      this.#isLogged = false;
      this.#telemetry.log.info("rate limits are applied again");
    }
  }
}
