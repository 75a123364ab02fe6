import type { Telemetry } from "../telemetry/telemetry.ts";

const REASONS = [
  "timeout",
  "disconnected",
  "overloaded",
  "paused",
  "readonly",
  "full",
  "loading",
  "cluster",
  "refused",
  "other",
] as const;
export type FailureReason = (typeof REASONS)[number];

/** The first word of Redis's error replies. */
const REPLIES: Readonly<Record<string, FailureReason>> = {
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

export const failureReason = (err: unknown): FailureReason => {
  if (!(err instanceof Error)) return "other";
  const reply = REPLIES[err.message.split(" ", 1)[0] ?? ""];
  if (reply !== undefined) return reply;
  if (/redirections/i.test(err.message)) return "cluster";
  return /connection|writeable|retries|closed|ECONN|EPIPE|timeout|socket/i.test(err.message) ? "disconnected" : "other";
};

/** So many failures with no success between them are a state, and not bad luck. */
const FAILURES_TO_FAIL = 8;
/** When that state is slowness, so long nothing is sent: a request should not wait for the deadline each time. */
const PAUSE_MS = 500;

/** Whether one operation works: counts failures, and logs each change of state once. */
export interface RedisHealth {
  succeeded(): void;
  failed(reason: FailureReason, operations: number, err?: unknown): void;
  isPaused(): boolean;
}

export const createRedisHealth = (operation: "get" | "set" | "script", { log, metrics }: Telemetry): RedisHealth => {
  let isFailing = false;
  let failures = 0;
  let pausedUntilMs = 0;
  const reportUp = (up: 0 | 1) => {
    if (operation === "get") metrics.redisUp.set(up);
  };

  return {
    succeeded: () => {
      failures = 0;
      reportUp(1);
      if (!isFailing) return;
      isFailing = false;
      log.info({ operation }, "Redis works again");
    },
    failed: (reason, operations, err) => {
      metrics.redisErrors.inc({ reason }, operations);
      failures += 1;
      if (failures < FAILURES_TO_FAIL) return;
      if (reason === "timeout") pausedUntilMs = performance.now() + PAUSE_MS;
      if (isFailing) return;
      isFailing = true;
      reportUp(0);
      log.warn({ operation, reason, err }, "Redis does not work: going on without it");
    },
    isPaused: () => performance.now() < pausedUntilMs,
  };
};
