import type { Endpoint, PassThrough } from "./endpoint.ts";

export interface Route {
  /** Path of the request's target, without query and trailing slash. */
  readonly path: string;
  /** Endpoint of exactly this path. */
  readonly endpoint: Endpoint | undefined;
  /** Proxy for requests that are not JSON-RPC. */
  readonly passthrough: PassThrough | undefined;
  /** Target of the request at the proxy. */
  readonly target: string;
}

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
    const [bare = "/"] = target.split("?", 1);
    const path = bare.length > 1 && bare.endsWith("/") ? bare.slice(0, -1) : bare;
    const prefix = `/${path.split("/", 2)[1] ?? ""}`;
    const below = prefix === "/" ? undefined : routes.get(prefix);
    const rest = target.slice(prefix.length);
    return below === undefined
      ? { path, endpoint: routes.get(path), passthrough: routes.get("/")?.passthrough, target }
      : {
          path,
          endpoint: routes.get(path),
          passthrough: below.passthrough,
          target: rest.startsWith("/") ? rest : `/${rest}`,
        };
  };
  const parsed = new Map([...routes.keys()].map((path) => [path, parse(path)]));
  return (target: string): Route => parsed.get(target) ?? parse(target);
};
