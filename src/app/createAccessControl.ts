import type { IncomingMessage } from "node:http";
import { type Access, type AuthenticatedRequest, createAccess } from "../access/accessControl.ts";
import { createRateLimits, type RateLimits } from "../access/rateLimits.ts";
import { createRedisClient } from "../cache/redisClient.ts";
import { parseRedisUrl } from "../cache/redisUrl.ts";
import type { Config } from "../config/schema.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";

/** Who is let in, by the configuration in force. */
export interface AccessControl {
  authenticate(request: IncomingMessage): AuthenticatedRequest;
  /** From now on these rules; what was counted so far stays counted. */
  setRules(rules: Config["access"]): void;
  close(): void;
}

export const createAccessControl = ({ access: first, cache }: Config, telemetry: Telemetry): AccessControl => {
  const { log, metrics } = telemetry;
  const inMemory = createRateLimits({ telemetry });
  let shared: { readonly limits: RateLimits; close(): void } | undefined;

  /** A connection of its own: what limits wait for must not wait behind large values of the cache. */
  const connect = (url: string) => {
    const client = createRedisClient(parseRedisUrl(url));
    client.on("error", (err) => log.debug({ err }, "Redis connection error (rate limits)"));
    const redis = { client, timeoutMs: cache.redisTimeoutMs };
    return { limits: createRateLimits({ redis, telemetry }), close: () => client.disconnect() };
  };
  const limitsOf = ({ limitStore }: Config["access"]): RateLimits => {
    if (limitStore === "memory" || cache.redis === undefined) return inMemory;
    shared ??= connect(cache.redis);
    return shared.limits;
  };
  const create = (rules: Config["access"]): Access => createAccess({ ...rules, limits: limitsOf(rules), metrics });

  let access = create(first);
  return {
    authenticate: (request) => access.authenticate(request),
    setRules: (rules) => {
      access = create(rules);
    },
    close: () => shared?.close(),
  };
};
