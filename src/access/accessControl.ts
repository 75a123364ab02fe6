import type { IncomingMessage } from "node:http";
import { isIPv6 } from "node:net";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import type { Metrics } from "../telemetry/telemetry.ts";
import { type ApiKeys, createApiKeys } from "./apiKeys.ts";
import { createMethodRules, type MethodRules } from "./methodRules.ts";
import type { Limit, RateLimits } from "./rateLimits.ts";
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
  readonly metrics: Pick<Metrics, "accessRefused">;
}

/** The client of a request, and its permissions. */
export interface AuthenticatedRequest {
  /** Identifies the client for fairness and logs: the name of its key, else its address. */
  readonly clientId: string;
  /** The request's target without the key. */
  readonly target: string;
  /**
   * Throws or rejects with RpcError if the method is forbidden or a limit is exceeded. Undefined if there is no rule.
   */
  readonly authorize: ((method: string) => Promise<void> | undefined) | undefined;
}

export interface Access {
  /**
   * Authenticates a request. Throws RpcError (401) if the key is missing or wrong. Removes the key from the request.
   */
  authenticate(request: IncomingMessage): AuthenticatedRequest;
}

interface KeyedTarget {
  readonly key: ApiKey;
  /** The request's target without the key. */
  readonly target: string;
}

/** Returns the address to count calls by. An IPv6 /64 counts as one client. */
const limitedAddress = (address: string): string => {
  if (!isIPv6(address)) {
    return address;
  }
  const [head = "", tail] = address.split("::");
  const groups = head === "" ? [] : head.split(":");
  const after = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = tail === undefined ? 0 : 8 - groups.length - after.length;
  return `${[...groups, ...Array<string>(Math.max(0, zeros)).fill("0"), ...after].slice(0, 4).join(":")}::/64`;
};

const BEARER = /^Bearer +(\S+)$/i;

const unauthorized = (): RpcError =>
  new RpcError(
    CODES.UNAUTHORIZED,
    "an API key is needed: header x-api-key, a bearer token, or the last part of the path",
    {
      status: 401,
    },
  );

/** Finds a key in one of the first two parts of the path: `/<chain>/<key>`, or `/<key>` with one chain. */
const findKeyInPath = (keys: ApiKeys<ApiKey>, target: string): KeyedTarget | undefined => {
  const [path = "", ...query] = target.split("?");
  const parts = path.split("/");
  for (const index of [2, 1]) {
    const part = parts[index];
    const key = part === undefined || part === "" ? undefined : keys.find(part);
    if (key === undefined) {
      continue;
    }
    const rest = parts.toSpliced(index, 1).join("/");
    return { key, target: [rest === "" ? "/" : rest, ...query].join("?") };
  }
  return undefined;
};

/**
 * Finds the key in x-api-key, then in the bearer token, then in the path. Removes it from the headers or the target.
 */
const takeKey = (keys: ApiKeys<ApiKey>, { headers, url = "/" }: IncomingMessage): KeyedTarget | undefined => {
  const { "x-api-key": header, authorization = "" } = headers;
  const byHeader = typeof header === "string" ? keys.find(header) : undefined;
  if (byHeader !== undefined) {
    delete headers["x-api-key"];
    return { key: byHeader, target: url };
  }
  const token = BEARER.exec(authorization)?.[1];
  const byToken = token === undefined ? undefined : keys.find(token);
  if (byToken !== undefined) {
    delete headers.authorization;
    return { key: byToken, target: url };
  }
  return findKeyInPath(keys, url);
};

/** Creates access control by API keys, method rules and rate limits. */
export const createAccess = (options: AccessOptions): Access => {
  const { keys, limits, limitPerAddress, metrics } = options;
  const apiKeys = createApiKeys(keys);
  const addressOf = createTrustedProxies(options.trustedProxies);
  const isAllowed = createMethodRules(options);
  const allowedByKey = new Map(keys.map((key) => [key, createMethodRules(key)]));

  const reject = (reason: "key" | "method" | "rate", error: RpcError): RpcError => {
    metrics.accessRefused.inc({ reason });
    return error;
  };
  const notAllowed = (method: string): RpcError =>
    reject("method", new RpcError(CODES.METHOD_NOT_FOUND, `the method ${method} is not allowed here`));

  const createPermit = (address: string, key: ApiKey | undefined): AuthenticatedRequest["authorize"] => {
    const isAllowedByKey = key && allowedByKey.get(key);
    const keyLimit = key && (key.limit ?? options.limitPerKey);
    const countCall = async (): Promise<void> => {
      try {
        if (limitPerAddress) {
          await limits.take("address", limitedAddress(address), limitPerAddress);
        }
        if (key && keyLimit) {
          await limits.take("key", key.name, keyLimit);
        }
      } catch (error) {
        throw error instanceof RpcError ? reject("rate", error) : error;
      }
    };
    const isLimited = limitPerAddress !== undefined || keyLimit !== undefined;
    if (!isAllowed && !isAllowedByKey && !isLimited) {
      return undefined;
    }
    return (method) => {
      if (isAllowed?.(method) === false || isAllowedByKey?.(method) === false) {
        throw notAllowed(method);
      }
      return isLimited ? countCall() : undefined;
    };
  };

  return {
    authenticate: (request) => {
      const forwarded = request.headers["x-forwarded-for"];
      const address = addressOf(
        request.socket.remoteAddress ?? "unknown",
        typeof forwarded === "string" ? forwarded : undefined,
      );
      if (keys.length === 0) {
        return { clientId: address, target: request.url ?? "/", authorize: createPermit(address, undefined) };
      }
      const keyed = takeKey(apiKeys, request);
      if (keyed === undefined) {
        throw reject("key", unauthorized());
      }
      return { clientId: keyed.key.name, target: keyed.target, authorize: createPermit(address, keyed.key) };
    },
  };
};

/** Admits everybody: no keys, no limits, no method rules. */
export const allowEveryone = ({ socket, url = "/" }: IncomingMessage): AuthenticatedRequest => ({
  clientId: socket.remoteAddress ?? "unknown",
  target: url,
  authorize: undefined,
});
