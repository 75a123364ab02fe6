import type { Authorize, Charge, ChargeReason } from "../core/context.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import type { DayBudget } from "../telemetry/dayBudgets.ts";
import type { Metrics } from "../telemetry/telemetry.ts";
import type { KeyUsage } from "../telemetry/usageLedger.ts";
import type { ApiKey } from "./apiKeys.ts";
import { createMethodRules, type MethodRules } from "./methodRules.ts";
import { callLimitOf, type Limit, type RateLimits } from "./rateLimits.ts";

export interface ClientRulesOptions extends MethodRules {
  readonly limitPerKey?: Limit | undefined;
  readonly limitPerAddress?: Limit | undefined;
  readonly limits: Pick<RateLimits, "take">;
  readonly metrics: Pick<Metrics, "accessRefused" | "chargedCalls">;
  /** Returns the usage of a key by its name. */
  usageOf(name: string): KeyUsage;
  /** Returns the budget of a key by its name. Undefined without one. */
  budgetOf(name: string): DayBudget | undefined;
}

/** The rules of one key or token, created once. */
interface Grant {
  readonly isAllowed: ReturnType<typeof createMethodRules>;
  readonly chains: ReadonlySet<string> | undefined;
  readonly expiresAtMs: number | undefined;
  readonly usage: KeyUsage;
  /** The limit of calls. */
  readonly limit: Limit | undefined;
  readonly budget: DayBudget | undefined;
}

const methodRefusal = (method: string): RpcError =>
  new RpcError(CODES.METHOD_NOT_FOUND, `the method ${method} is not allowed here`);

/** Returns the error (429) of a key that has spent its units of the day. */
const budgetExceeded = ({ unitsPerDay, spentUnits, endsAtMs, endsInMs }: DayBudget): RpcError =>
  new RpcError(CODES.RATE_LIMITED, `the ${unitsPerDay} units of today are spent: wait until 00:00 UTC`, {
    status: 429,
    retryAfterSeconds: Math.max(1, Math.ceil(endsInMs / 1000)),
    data: { unitsPerDay, spentUnits, endsAt: new Date(endsAtMs).toISOString() },
  });

/** The permissions of clients: the rules of each key, the method rules and the rate limits. */
export class ClientRules {
  readonly #options: ClientRulesOptions;
  readonly #isAllowed: ReturnType<typeof createMethodRules>;
  readonly #grants = new WeakMap<ApiKey, Grant>();

  constructor(options: ClientRulesOptions) {
    this.#options = options;
    this.#isAllowed = createMethodRules(options);
  }

  grantOf(key: ApiKey): Grant {
    let grant = this.#grants.get(key);
    if (grant === undefined) {
      grant = {
        isAllowed: createMethodRules(key),
        chains: key.chains && new Set(key.chains),
        expiresAtMs: key.expires === undefined ? undefined : Date.parse(key.expires),
        usage: this.#options.usageOf(key.name),
        limit: (key.limit && callLimitOf(key.limit)) ?? this.#options.limitPerKey,
        budget: this.#options.budgetOf(key.name),
      };
      this.#grants.set(key, grant);
    }
    return grant;
  }

  /** Throws RpcError if the method is forbidden. The call does not count against a limit. */
  checkMethod(method: string, key: ApiKey | undefined): void {
    const isAllowedByKey = key && this.grantOf(key).isAllowed;
    if (this.#isAllowed?.(method) === false || isAllowedByKey?.(method) === false) {
      throw this.reject("method", methodRefusal(method));
    }
  }

  /** Returns the function that authorizes each call of a client. Undefined if there is no rule. */
  createPermit(address: string, key: ApiKey | undefined, charge: Charge | undefined): Authorize | undefined {
    const isAllowed = this.#isAllowed;
    const { isAllowed: isAllowedByKey = undefined, budget = undefined } = key ? this.grantOf(key) : {};
    if (!isAllowed && !isAllowedByKey && !charge && !budget) {
      return undefined;
    }
    return (method) => {
      if (isAllowed?.(method) === false || isAllowedByKey?.(method) === false) {
        charge?.(1, "method");
        throw this.reject("method", methodRefusal(method));
      }
      if (budget?.isSpent) {
        // A client that does not wait has its rate limit too.
        charge?.(1, "units");
        throw this.reject("units", budgetExceeded(budget));
      }
      return charge && this.countCall(address, key);
    };
  }

  /** Returns the function that counts calls of a client. Undefined if the client has no limit. */
  chargeOf(address: string, key: ApiKey | undefined): Charge | undefined {
    const { limitPerAddress, metrics } = this.#options;
    if (limitPerAddress === undefined && (key && this.grantOf(key).limit) === undefined) {
      return undefined;
    }
    return (calls: number, reason: ChargeReason): void => {
      metrics.chargedCalls.inc({ reason }, calls);
      // The next call finds that the limit is exceeded.
      this.#take(address, key, calls).catch(() => undefined);
    };
  }

  /** Counts a refusal by its reason. Returns the error. */
  reject(reason: "key" | "method" | "rate" | "units", error: RpcError): RpcError {
    this.#options.metrics.accessRefused.inc({ reason });
    return error;
  }

  /** Counts one call. Rejects with RpcError (429) above a limit of the client. */
  async countCall(address: string, key: ApiKey | undefined): Promise<void> {
    try {
      await this.#take(address, key, 1);
    } catch (error) {
      throw error instanceof RpcError ? this.reject("rate", error) : error;
    }
  }

  async #take(address: string, key: ApiKey | undefined, calls: number): Promise<void> {
    const { limits, limitPerAddress } = this.#options;
    const keyLimit = key && this.grantOf(key).limit;
    if (limitPerAddress) {
      await limits.take("address", address, limitPerAddress, calls);
    }
    if (key && keyLimit) {
      await limits.take("key", key.name, keyLimit, calls);
    }
  }
}
