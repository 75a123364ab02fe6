import type { Endpoint, PassThrough } from "./endpoint.ts";

export interface Route {
  /** The path of a request's target, without query and trailing slash. */
  readonly path: string;
  /** What answers JSON-RPC at this very path. */
  readonly endpoint: Endpoint | undefined;
  /** Where anything else goes, and the target it has there. */
  readonly passthrough: PassThrough | undefined;
  readonly target: string;
}

/** `GET http://host/path` is allowed too (RFC 9112 section 3.2.2). */
const originForm = (target: string): string => {
  if (target.startsWith("/")) return target;
  if (!URL.canParse(target)) return "/";
  const { pathname, search } = new URL(target);
  return pathname + search;
};

/** Decides by the path alone. Below `/<name>/` the chain's own passthrough is asked, without that prefix. */
export const createRouter = (routes: ReadonlyMap<string, Endpoint>) => {
  const slow = (given: string): Route => {
    const target = originForm(given);
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
  const known = new Map([...routes.keys()].map((path) => [path, slow(path)]));
  return (target: string): Route => known.get(target) ?? slow(target);
};
