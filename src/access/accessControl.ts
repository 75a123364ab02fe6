import type { IncomingMessage } from "node:http";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import type { KeyUsage } from "../telemetry/keyUsage.ts";
import type { Metrics } from "../telemetry/telemetry.ts";
import { createApiKeys } from "./apiKeys.ts";
import type { Charge, ChargeReason } from "./charge.ts";
import { clientOfAddress } from "./clientAddress.ts";
import { createMethodRules, type MethodRules } from "./methodRules.ts";
import type { Limit, RateLimits } from "./rateLimits.ts";
import { hasWrongKey, RequestKeys, removeKeyHeaders } from "./requestKey.ts";
import { createTrustedProxies } from "./trustedProxies.ts";

export interface ApiKey extends MethodRules {
  readonly name: string;
  /** SHA-256 of the key, in hex. Only the owner has the key itself. */
  readonly sha256: string;
  /** Replaces the limit for all keys. */
  readonly limit?: Limit | undefined;
}

export interface AccessOptions extends MethodRules {
  /** If there is a key, every request must have one. */
  readonly keys: readonly ApiKey[];
  readonly limitPerKey?: Limit | undefined;
  readonly limitPerAddress?: Limit | undefined;
  /** Networks whose X-Forwarded-For header is trusted. */
  readonly trustedProxies: readonly string[];
  readonly limits: RateLimits;
  readonly metrics: Pick<Metrics, "accessRefused" | "chargedCalls">;
  /** Returns the usage of a key by its name. */
  usageOf(name: string): KeyUsage;
}

/** The client of a request, and its permissions. */
export interface AuthenticatedRequest {
  /** Identifies the client for fairness and logs: the name of its key, else its address. */
  readonly clientId: string;
  /** The client's address; of an IPv6 client its /64. */
  readonly address: string;
  /** SHA-256 of the client's key. Undefined if no key is configured. */
  readonly keyDigest: string | undefined;
  /** The request's target without the key. */
  readonly target: string;
  /** Removes the key from the headers of a request that is sent to another server. Undefined without a key. */
  readonly removeKey?: ((request: IncomingMessage) => void) | undefined;
  /**
   * Throws or rejects with RpcError if the method is forbidden or a limit is exceeded. Undefined if there is no rule.
   */
  readonly authorize: ((method: string) => Promise<void> | undefined) | undefined;
  /** Counts the client's calls and bytes. Undefined without a key. */
  readonly usage: KeyUsage | undefined;
  /** Undefined if the client has no limit. */
  readonly charge: Charge | undefined;
}

/** Authenticates a connection again by the current rules. Throws RpcError (401) if its key is not valid any more. */
export type Readmit = (admitted: AuthenticatedRequest) => AuthenticatedRequest;

export interface Access {
  /**
   * Authenticates a request. Throws RpcError (401) if the key is missing or wrong.
   * `isChainPath` separates a chain's path from a wrong key.
   */
  authenticate(request: IncomingMessage, isChainPath: (path: string) => boolean): AuthenticatedRequest;
  readonly readmit: Readmit;
}

const unauthorized = (message: string): RpcError => new RpcError(CODES.UNAUTHORIZED, message, { status: 401 });

const MISSING_KEY = "an API key is needed: header x-api-key, a bearer token, or the last part of the path";
const WRONG_KEY = "the API key is not valid";

class ConfiguredAccess implements Access {
  readonly #options: AccessOptions;
  readonly #requestKeys: RequestKeys<ApiKey>;
  readonly #addressOf: ReturnType<typeof createTrustedProxies>;
  readonly #isAllowed: ReturnType<typeof createMethodRules>;
  readonly #allowedByKey: ReadonlyMap<ApiKey, ReturnType<typeof createMethodRules>>;

  readonly #usages: ReadonlyMap<ApiKey, KeyUsage>;

  constructor(options: AccessOptions) {
    const { keys } = options;
    this.#options = options;
    this.#requestKeys = new RequestKeys(createApiKeys(keys));
    this.#addressOf = createTrustedProxies(options.trustedProxies);
    this.#isAllowed = createMethodRules(options);
    this.#usages = new Map(keys.map((key) => [key, options.usageOf(key.name)]));
    this.#allowedByKey = new Map(keys.map((key) => [key, createMethodRules(key)]));
  }

  authenticate(request: IncomingMessage, isChainPath: (path: string) => boolean): AuthenticatedRequest {
    const forwarded = request.headers["x-forwarded-for"];
    const remote = request.socket.remoteAddress ?? "unknown";
    const address = clientOfAddress(this.#addressOf(remote, typeof forwarded === "string" ? forwarded : undefined));
    if (this.#options.keys.length === 0) {
      return this.#admit(address, undefined, request.url ?? "/");
    }
    const keyed = this.#requestKeys.take(request);
    if (keyed === undefined) {
      this.#chargeOf(address, undefined)?.(1, "key");
      throw this.#reject("key", unauthorized(hasWrongKey(request, isChainPath) ? WRONG_KEY : MISSING_KEY));
    }
    const { key, target, texts } = keyed;
    return { ...this.#admit(address, key, target), removeKey: (passed) => removeKeyHeaders(passed, texts) };
  }

  readonly readmit: Readmit = ({ address, keyDigest, target }) => {
    const { keys } = this.#options;
    const key = keys.find(({ sha256 }) => sha256 === keyDigest);
    if (keys.length > 0 && key === undefined) {
      throw this.#reject("key", unauthorized(keyDigest === undefined ? MISSING_KEY : WRONG_KEY));
    }
    return this.#admit(address, key, target);
  };

  #admit(address: string, key: ApiKey | undefined, target: string): AuthenticatedRequest {
    const clientId = key === undefined ? address : key.name;
    const charge = this.#chargeOf(address, key);
    const authorize = this.#createPermit(address, key, charge);
    const usage = key && this.#usages.get(key);
    return { clientId, address, keyDigest: key?.sha256, target, authorize, charge, usage };
  }

  #reject(reason: "key" | "method" | "rate", error: RpcError): RpcError {
    this.#options.metrics.accessRefused.inc({ reason });
    return error;
  }

  #createPermit(
    address: string,
    key: ApiKey | undefined,
    charge: Charge | undefined,
  ): AuthenticatedRequest["authorize"] {
    const isAllowed = this.#isAllowed;
    const isAllowedByKey = key && this.#allowedByKey.get(key);
    if (!isAllowed && !isAllowedByKey && !charge) {
      return undefined;
    }
    return (method) => {
      if (isAllowed?.(method) === false || isAllowedByKey?.(method) === false) {
        charge?.(1, "method");
        const message = `the method ${method} is not allowed here`;
        throw this.#reject("method", new RpcError(CODES.METHOD_NOT_FOUND, message));
      }
      return charge && this.#countCall(address, key);
    };
  }

  async #countCall(address: string, key: ApiKey | undefined): Promise<void> {
    try {
      await this.#take(address, key, 1);
    } catch (error) {
      throw error instanceof RpcError ? this.#reject("rate", error) : error;
    }
  }

  #chargeOf(address: string, key: ApiKey | undefined): Charge | undefined {
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

/** Creates access control by API keys, method rules and rate limits. */
export const createAccess = (options: AccessOptions): Access => new ConfiguredAccess(options);

/** Admits everybody: no keys, no limits, no method rules. */
export const allowEveryone = ({ socket, url = "/" }: IncomingMessage): AuthenticatedRequest => {
  const address = clientOfAddress(socket.remoteAddress ?? "unknown");
  return {
    clientId: address,
    address,
    keyDigest: undefined,
    target: url,
    authorize: undefined,
    charge: undefined,
    usage: undefined,
  };
};
