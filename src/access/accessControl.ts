import type { IncomingMessage } from "node:http";
import { isIPv6 } from "node:net";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import type { Metrics } from "../telemetry/telemetry.ts";
import { createApiKeys } from "./apiKeys.ts";
import { createMethodRules, type MethodRules } from "./methodRules.ts";
import type { Limit, RateLimits } from "./rateLimits.ts";
import { createTrustedProxies } from "./trustedProxies.ts";

export interface ApiKey extends MethodRules {
  readonly name: string;
  /** Hex; the key itself is known to its owner alone. */
  readonly sha256: string;
  /** Instead of the limit for all keys. */
  readonly limit?: Limit | undefined;
}

export interface AccessOptions extends MethodRules {
  /** Where there is one, nobody is answered without. */
  readonly keys: readonly ApiKey[];
  readonly limitPerKey?: Limit | undefined;
  readonly limitPerAddress?: Limit | undefined;
  /** Networks whose X-Forwarded-For is believed. */
  readonly trustedProxies: readonly string[];
  readonly limits: RateLimits;
  readonly metrics: Pick<Metrics, "accessRefused">;
}

/** Who asks, and what he may. */
export interface AuthenticatedRequest {
  /** One string a client, for fairness and logs: the name of his key, else his address. */
  readonly clientId: string;
  /** The request's target without the key. */
  readonly target: string;
  /** Throws or rejects with RpcError where this method may not be called, or not now. Undefined where everything may. */
  readonly authorize: ((method: string) => Promise<void> | undefined) | undefined;
}

export interface Access {
  /** Throws RpcError (401) where a key is missing or wrong. The key is taken out of the request: nobody behind us sees it. */
  authenticate(request: IncomingMessage): AuthenticatedRequest;
}

/** As many machines as he likes have addresses in one /64: it counts as one caller. */
const limitedAddress = (address: string): string => {
  if (!isIPv6(address)) return address;
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

export const createAccess = (options: AccessOptions): Access => {
  const { keys, limits, limitPerAddress, metrics } = options;
  const known = createApiKeys(keys);
  const addressOf = createTrustedProxies(options.trustedProxies);
  const isAllowed = createMethodRules(options);
  const allowedByKey = new Map(keys.map((key) => [key, createMethodRules(key)]));

  const refuse = (reason: "key" | "method" | "rate", error: RpcError): RpcError => {
    metrics.accessRefused.inc({ reason });
    return error;
  };
  const notAllowed = (method: string): RpcError =>
    refuse("method", new RpcError(CODES.METHOD_NOT_FOUND, `the method ${method} is not allowed here`));

  /** A key as one of the first two parts of the path: `/<chain>/<key>` or, with one chain, `/<key>`. */
  const fromPath = (target: string): { readonly key: ApiKey; readonly target: string } | undefined => {
    const [path = "", ...query] = target.split("?");
    const parts = path.split("/");
    for (const at of [2, 1]) {
      const part = parts[at];
      const key = part === undefined || part === "" ? undefined : known.find(part);
      if (key === undefined) continue;
      const rest = parts.toSpliced(at, 1).join("/");
      return { key, target: [rest === "" ? "/" : rest, ...query].join("?") };
    }
    return undefined;
  };

  const findKey = ({ headers, url = "/" }: IncomingMessage): { readonly key: ApiKey; readonly target: string } => {
    const { "x-api-key": given, authorization = "" } = headers;
    const byHeader = typeof given === "string" ? known.find(given) : undefined;
    if (byHeader !== undefined) {
      delete headers["x-api-key"];
      return { key: byHeader, target: url };
    }
    const token = BEARER.exec(authorization)?.[1];
    const byToken = token === undefined ? undefined : known.find(token);
    if (byToken !== undefined) {
      delete headers.authorization;
      return { key: byToken, target: url };
    }
    const byPath = fromPath(url);
    if (byPath === undefined) throw refuse("key", unauthorized());
    return byPath;
  };

  const permitOf = (address: string, key: ApiKey | undefined): AuthenticatedRequest["authorize"] => {
    const isAllowedByKey = key && allowedByKey.get(key);
    const keyLimit = key && (key.limit ?? options.limitPerKey);
    const take = async (): Promise<void> => {
      try {
        if (limitPerAddress) await limits.take("address", limitedAddress(address), limitPerAddress);
        if (key && keyLimit) await limits.take("key", key.name, keyLimit);
      } catch (error) {
        throw error instanceof RpcError ? refuse("rate", error) : error;
      }
    };
    const isLimited = limitPerAddress !== undefined || keyLimit !== undefined;
    if (!isAllowed && !isAllowedByKey && !isLimited) return undefined;
    return (method) => {
      if (isAllowed?.(method) === false || isAllowedByKey?.(method) === false) throw notAllowed(method);
      return isLimited ? take() : undefined;
    };
  };

  return {
    authenticate: (request) => {
      const { headers, socket } = request;
      const forwarded = headers["x-forwarded-for"];
      const address = addressOf(
        socket.remoteAddress ?? "unknown",
        typeof forwarded === "string" ? forwarded : undefined,
      );
      if (keys.length === 0)
        return { clientId: address, target: request.url ?? "/", authorize: permitOf(address, undefined) };
      const { key, target } = findKey(request);
      return { clientId: key.name, target, authorize: permitOf(address, key) };
    },
  };
};

/** No keys, no limits, no lists. */
export const allowEveryone = ({ socket, url = "/" }: IncomingMessage): AuthenticatedRequest => ({
  clientId: socket.remoteAddress ?? "unknown",
  target: url,
  authorize: undefined,
});
