import type { Authorize, Charge, ChargeReason } from "../core/context.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import type { Metrics } from "../telemetry/telemetry.ts";
import type { KeyUsage } from "../telemetry/usageLedger.ts";
import type { ApiKey } from "./apiKeys.ts";
import { createMethodRules, type MethodRules } from "./methodRules.ts";
import type { Limit, RateLimits } from "./rateLimits.ts";

export interface ClientRulesOptions extends MethodRules {
  readonly limitPerKey?: Limit | undefined;
  readonly limitPerAddress?: Limit | undefined;
  readonly limits: Pick<RateLimits, "take">;
  readonly metrics: Pick<Metrics, "accessRefused" | "chargedCalls">;
  /** Returns the usage of a key by its name. */
  usageOf(name: string): KeyUsage;
}

/** The rules of one key or token, created once. */
interface Grant {
  readonly isAllowed: ReturnType<typeof createMethodRules>;
  readonly chains: ReadonlySet<string> | undefined;
  readonly expiresAtMs: number | undefined;
  readonly usage: KeyUsage;
}

const methodRefusal = (method: string): RpcError =>
  new RpcError(CODES.METHOD_NOT_FOUND, `the method ${method} is not allowed here`);

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
    const isAllowedByKey = key && this.grantOf(key).isAllowed;
    if (!isAllowed && !isAllowedByKey && !charge) {
      return undefined;
    }
    return (method) => {
      if (isAllowed?.(method) === false || isAllowedByKey?.(method) === false) {
        charge?.(1, "method");
        throw this.reject("method", methodRefusal(method));
      }
      return charge && this.#countCall(address, key);
    };
  }

  /** Returns the function that counts calls of a client. Undefined if the client has no limit. */
  chargeOf(address: string, key: ApiKey | undefined): Charge | undefined {
    const { limitPerAddress, limitPerKey, metrics } = this.#options;
    if (limitPerAddress === undefined && (key?.limit ?? (key && limitPerKey)) === undefined) {
      return undefined;
    }
    return (calls: number, reason: ChargeReason): void => {
      metrics.chargedCalls.inc({ reason }, calls);
      // The next call finds that the limit is exceeded.
      this.#take(address, key, calls).catch(() => undefined);
    };
  }

  /** Counts a refusal by its reason. Returns the error. */
  reject(reason: "key" | "method" | "rate", error: RpcError): RpcError {
    this.#options.metrics.accessRefused.inc({ reason });
    return error;
  }

  async #countCall(address: string, key: ApiKey | undefined): Promise<void> {
    try {
      await this.#take(address, key, 1);
    } catch (error) {
      throw error instanceof RpcError ? this.reject("rate", error) : error;
    }
  }

  async #take(address: string, key: ApiKey | undefined, calls: number): Promise<void> {
    const { limits, limitPerAddress, limitPerKey } = this.#options;
    const keyLimit = key && (key.limit ?? limitPerKey);
    if (limitPerAddress) {
      await limits.take("address", address, limitPerAddress, calls);
    }
    if (key && keyLimit) {
      await limits.take("key", key.name, keyLimit, calls);
    }
  }
}
