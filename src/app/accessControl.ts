import { Access, type Reauthorize } from "../access/access.ts";
import { createTrustedProxyCheck } from "../access/clientAddress.ts";
import { RateLimits } from "../access/rateLimits.ts";
import { connectRedis } from "../cache/redisClient.ts";
import type { Config } from "../config/schema.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { UsageLedger } from "../telemetry/usageLedger.ts";
import type { PaymentSource } from "./paymentSource.ts";

interface AccessParts {
  readonly usages: Pick<UsageLedger, "of" | "budgets">;
  readonly payments: Pick<PaymentSource, "create">;
}

/** Access control by the current configuration, with its rate limits, and their Redis connection if it is configured. */
export class AccessControl {
  readonly #parts: AccessParts;
  readonly #telemetry: Telemetry;
  readonly #rates: RateLimits;
  readonly #cache: Config["cache"];
  #shared: { readonly limits: RateLimits; close(): void } | undefined;
  #access: Access;
  #isTrustedProxy: (address: string) => boolean;

  constructor(config: Config, telemetry: Telemetry, parts: AccessParts) {
    this.#parts = parts;
    this.#telemetry = telemetry;
    this.#rates = new RateLimits({ telemetry });
    this.#cache = config.cache;
    this.#access = this.#createRules(config);
    this.#isTrustedProxy = createTrustedProxyCheck(config.access.trustedProxies);
  }

  /** Authenticates a request. Throws or rejects with RpcError if it is rejected. */
  readonly authenticate: Access["authenticate"] = (request, isChainPath) =>
    this.#access.authenticate(request, isChainPath);

  /** Authenticates an open connection by the current rules. Throws RpcError if its key is not valid any more. */
  readonly reauthorize: Reauthorize = (caller, use) => this.#access.reauthorize(caller, use);

  /** Whether an address belongs to a trusted proxy, whose connections are those of many clients. */
  readonly isTrustedProxy = (address: string): boolean => this.#isTrustedProxy(address);

  /** Replaces the rules for new requests. Counts of rate limits are preserved. */
  setRules(config: Config): void {
    this.#access = this.#createRules(config);
    this.#isTrustedProxy = createTrustedProxyCheck(config.access.trustedProxies);
  }

  close(): void {
    this.#shared?.close();
  }

  #createRules(config: Config): Access {
    const { usages, payments } = this.#parts;
    return new Access({
      ...config.access,
      limits: this.#limitsOf(config.access),
      metrics: this.#telemetry.metrics,
      usageOf: (name) => usages.of(name),
      budgetOf: (name) => usages.budgets.find({ key: name }),
      payments: payments.create(config),
    });
  }

  #limitsOf({ limitStore }: Config["access"]): RateLimits {
    const { redis } = this.#cache;
    if (limitStore === "memory" || redis === undefined) {
      return this.#rates;
    }
    this.#shared ??= this.#connect(redis);
    return this.#shared.limits;
  }

  /** Opens a separate connection, so that rate limits do not wait behind large cache values. */
  #connect(url: string): { readonly limits: RateLimits; close(): void } {
    const telemetry = this.#telemetry;
    const client = connectRedis(url, "rate limits", telemetry.log);
    const redis = { client, timeoutMs: this.#cache.redisTimeoutMs };
    return { limits: new RateLimits({ redis, telemetry }), close: () => client.disconnect() };
  }
}
