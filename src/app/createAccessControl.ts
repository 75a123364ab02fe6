import type { IncomingMessage } from "node:http";
import { Access, type AuthenticatedCaller, type Reauthorize } from "../access/accessControl.ts";
import { createTrustedProxyCheck } from "../access/clientAddress.ts";
import { createRateLimits, type RateLimits } from "../access/rateLimits.ts";
import { connectRedis } from "../cache/redisClient.ts";
import type { Config } from "../config/schema.ts";
import type { Awaitable } from "../jsonrpc/awaitable.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { UsageLedger } from "../telemetry/usageLedger.ts";
import type { PaymentSource } from "./createPayments.ts";

/** Access control by the current configuration. */
export interface AccessControl {
  /** Authenticates a request. Throws or rejects with RpcError if it is rejected. */
  authenticate(request: IncomingMessage, isChainPath: (path: string) => boolean): Awaitable<AuthenticatedCaller>;
  /** Authenticates an open connection by the current rules. Throws RpcError if its key is not valid any more. */
  reauthorize: Reauthorize;
  /** Whether an address belongs to a trusted proxy, whose connections are those of many clients. */
  isTrustedProxy(address: string): boolean;
  /** Replaces the rules for new requests. Counts of rate limits are preserved. */
  setRules(config: Config): void;
  close(): void;
}

type Rates = Pick<RateLimits, "take">;

export interface AccessParts {
  readonly usages: Pick<UsageLedger, "of">;
  /** Counts calls without Redis. Default: in this process alone. */
  readonly rates?: Rates | undefined;
  readonly payments: Pick<PaymentSource, "create">;
}

/** Creates access control with its rate limits, and their Redis connection if it is configured. */
export const createAccessControl = (
  config: Config,
  telemetry: Telemetry,
  { usages, rates = createRateLimits({ telemetry }), payments }: AccessParts,
): AccessControl => {
  const { access: first, cache } = config;
  const { log, metrics } = telemetry;
  let shared: { readonly limits: Rates; close(): void } | undefined;

  /** Opens a separate connection, so that rate limits do not wait behind large cache values. */
  const connect = (url: string) => {
    const client = connectRedis(url, "rate limits", log);
    const redis = { client, timeoutMs: cache.redisTimeoutMs };
    return { limits: createRateLimits({ redis, telemetry }), close: () => client.disconnect() };
  };
  const limitsOf = ({ limitStore }: Config["access"]): Rates => {
    if (limitStore === "memory" || cache.redis === undefined) {
      return rates;
    }
    shared ??= connect(cache.redis);
    return shared.limits;
  };
  const createRules = (own: Config): Access =>
    new Access({
      ...own.access,
      limits: limitsOf(own.access),
      metrics,
      usageOf: (name) => usages.of(name),
      payments: payments.create(own),
    });

  let access = createRules(config);
  let isTrustedProxy = createTrustedProxyCheck(first.trustedProxies);
  return {
    authenticate: (request, isChainPath) => access.authenticate(request, isChainPath),
    reauthorize: (admitted, use) => access.reauthorize(admitted, use),
    isTrustedProxy: (address) => isTrustedProxy(address),
    setRules: (next) => {
      access = createRules(next);
      isTrustedProxy = createTrustedProxyCheck(next.access.trustedProxies);
    },
    close: () => shared?.close(),
  };
};
