/** Why a Redis operation failed; a metric label. `corrupt`: the value that was read is not a valid entry. */
export const REDIS_FAILURES = [
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
  "corrupt",
] as const;

export type RedisFailure = (typeof REDIS_FAILURES)[number];
