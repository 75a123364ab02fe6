import type { RedisFailure } from "../telemetry/cacheMetrics.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";

/** The first word of Redis's error replies. */
const REPLIES: Readonly<Record<string, RedisFailure>> = {
  READONLY: "readonly",
  OOM: "full",
  MISCONF: "full",
  LOADING: "loading",
  MASTERDOWN: "loading",
  CLUSTERDOWN: "cluster",
  MOVED: "cluster",
  ASK: "cluster",
  TRYAGAIN: "cluster",
  CROSSSLOT: "cluster",
  NOAUTH: "refused",
  WRONGPASS: "refused",
  NOPERM: "refused",
};

export const failureReason = (err: unknown): RedisFailure => {
  if (!(err instanceof Error)) {
    return "other";
  }
  const reply = REPLIES[err.message.split(" ", 1)[0] ?? ""];
  if (reply !== undefined) {
    return reply;
  }
  if (/redirections/i.test(err.message)) {
    return "cluster";
  }
  return /connection|writeable|retries|closed|ECONN|EPIPE|timeout|socket/i.test(err.message) ? "disconnected" : "other";
};

/** Redis counts as failing after this many failures without a success. */
const FAILURES_TO_FAIL = 8;
/** If Redis is slow, no command is sent for this time. Otherwise each request would wait for the deadline. */
const PAUSE_MS = 500;

/** The health of one operation. Counts failures, measures successes, and logs each change once. */
export class RedisHealth {
  readonly #operation: "get" | "set" | "script";
  readonly #telemetry: Pick<Telemetry, "log" | "metrics">;
  readonly #onOutcome: (() => void) | undefined;
  #isFailing = false;
  #isLogged = false;
  #failures = 0;
  #pausedUntilMs = 0;

  /** `onOutcome` is called after each success, and when the operation begins to fail. */
  constructor(
    operation: "get" | "set" | "script",
    telemetry: Pick<Telemetry, "log" | "metrics">,
    onOutcome?: () => void,
  ) {
    this.#operation = operation;
    this.#telemetry = telemetry;
    this.#onOutcome = onOutcome;
  }

  get isPaused(): boolean {
    return performance.now() < this.#pausedUntilMs;
  }

  get isFailing(): boolean {
    return this.#isFailing;
  }

  /** Records a success, and how long the operation took if it began at `startMs`. */
  succeeded(startMs?: number): void {
    if (startMs !== undefined) {
      const seconds = (performance.now() - startMs) / 1000;
      this.#telemetry.metrics.redisSeconds.observe({ operation: this.#operation }, seconds);
    }
    this.#failures = 0;
    const wasFailing = this.#isFailing;
    this.#isFailing = false;
    this.#onOutcome?.();
    if (!wasFailing) {
      return;
    }
    if (this.#isLogged) {
      this.#isLogged = false;
      this.#telemetry.log.info({ operation: this.#operation }, "Redis works again");
    }
  }

  failed(reason: RedisFailure, operations: number, err?: unknown): void {
    this.#telemetry.metrics.redisErrors.inc({ reason }, operations);
    this.#failures += 1;
    if (this.#failures < FAILURES_TO_FAIL) {
      return;
    }
    if (reason === "timeout") {
      this.#pausedUntilMs = performance.now() + PAUSE_MS;
    }
    if (this.#isFailing) {
      return;
    }
    this.#isFailing = true;
    this.#onOutcome?.();
    // `connectRedis` logs a lost connection with its cause.
    if (reason !== "disconnected") {
      this.#isLogged = true;
      this.#telemetry.log.warn({ operation: this.#operation, reason, err }, "Redis fails: continuing without it");
    }
  }
}
