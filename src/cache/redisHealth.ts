import type { RedisFailure } from "../core/redisFailures.ts";
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

/** The health of one operation. Counts failures, and logs each change once. */
export interface RedisHealth {
  succeeded(): void;
  failed(reason: RedisFailure, operations: number, err?: unknown): void;
  isPaused(): boolean;
  isFailing(): boolean;
}

export const createRedisHealth = (operation: "get" | "set" | "script", { log, metrics }: Telemetry): RedisHealth => {
  let isFailing = false;
  let isLogged = false;
  let failures = 0;
  let pausedUntilMs = 0;
  const reportUp = (up: 0 | 1) => {
    if (operation === "get") {
      metrics.redisUp.set(up);
    }
  };

  return {
    succeeded: () => {
      failures = 0;
      reportUp(1);
      if (!isFailing) {
        return;
      }
      isFailing = false;
      if (isLogged) {
        isLogged = false;
        log.info({ operation }, "Redis works again");
      }
    },
    failed: (reason, operations, err) => {
      metrics.redisErrors.inc({ reason }, operations);
      failures += 1;
      if (failures < FAILURES_TO_FAIL) {
        return;
      }
      if (reason === "timeout") {
        pausedUntilMs = performance.now() + PAUSE_MS;
      }
      if (isFailing) {
        return;
      }
      isFailing = true;
      reportUp(0);
      // A lost connection is logged with its cause in redisConnection.
      if (reason !== "disconnected") {
        isLogged = true;
        log.warn({ operation, reason, err }, "Redis fails: continuing without it");
      }
    },
    isPaused: () => performance.now() < pausedUntilMs,
    isFailing: () => isFailing,
  };
};
