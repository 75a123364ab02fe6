import type { AuthenticatedCaller } from "../access/access.ts";
import { RpcError } from "../jsonrpc/rpcError.ts";
import type { Endpoint, PassThrough } from "./endpoint.ts";

export interface Route {
  /** Path of the request's target, without query and trailing slash. */
  readonly path: string;
  /** Endpoint of exactly this path. */
  readonly endpoint: Endpoint | undefined;
  /** Proxy for requests that are not JSON-RPC. */
  readonly passthrough: PassThrough | undefined;
  /** The name of the chain of endpoint or proxy. */
  readonly chain: string | undefined;
  /** Target of the request at the proxy. */
  readonly target: string;
}

/** A client that may send its request, and where the request goes. */
export interface Admitted {
  readonly caller: AuthenticatedCaller;
  readonly route: Route;
}

/** Throws the error of a client that is not admitted. */
export const orThrow = (admitted: Admitted | RpcError): Admitted => {
  if (admitted instanceof RpcError) {
    throw admitted;
  }
  return admitted;
};

/** Returns path and query of a target, which may be an absolute URL (RFC 9112, section 3.2.2). */
const originForm = (target: string): string => {
  if (target.startsWith("/")) {
    return target;
  }
  if (!URL.canParse(target)) {
    return "/";
  }
  const { pathname, search } = new URL(target);
  return pathname + search;
};

/**
 * Creates the router, which decides by the path alone.
 * Paths below `/<name>/` use the proxy of that chain, without the prefix.
 */
export const createRouter = (routes: ReadonlyMap<string, Endpoint>) => {
  const parse = (requestTarget: string): Route => {
    const target = originForm(requestTarget);
    const [pathWithoutQuery = "/"] = target.split("?", 1);
    const path =
      pathWithoutQuery.length > 1 && pathWithoutQuery.endsWith("/") ? pathWithoutQuery.slice(0, -1) : pathWithoutQuery;
    const chainPath = `/${path.split("/", 2)[1] ?? ""}`;
    const chainEndpoint = chainPath === "/" ? undefined : routes.get(chainPath);
    const targetInChain = target.slice(chainPath.length);
    return chainEndpoint === undefined
      ? {
          path,
          endpoint: routes.get(path),
          passthrough: routes.get("/")?.passthrough,
          chain: (routes.get(path) ?? routes.get("/"))?.chain,
          target,
        }
      : {
          path,
          endpoint: routes.get(path),
          passthrough: chainEndpoint.passthrough,
          chain: chainEndpoint.chain,
          target: targetInChain.startsWith("/") ? targetInChain : `/${targetInChain}`,
        };
  };
  const parsed = new Map([...routes.keys()].map((path) => [path, parse(path)]));
  return (target: string): Route => parsed.get(target) ?? parse(target);
};
