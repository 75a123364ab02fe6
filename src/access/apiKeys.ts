import { hash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { MethodRules } from "./methodRules.ts";
import type { KeyLimit } from "./rateLimits.ts";

interface ApiKeys<K> {
  /** Returns the key whose digest is that of `text`, undefined if there is none. */
  find(text: string): K | undefined;
}

/**
 * Creates the lookup of API keys by their SHA-256 digests.
 * Every digest is compared in constant time, so that timing reveals neither a near guess nor the key it resembles.
 * A key that was found is remembered as text: a lookup by its hash, with a secret seed, reveals nothing either.
 */
export const createApiKeys = <K extends { readonly sha256: string }>(keys: readonly K[]): ApiKeys<K> => {
  const digests = keys.map((key) => ({ key, digest: Buffer.from(key.sha256, "hex") }));
  const known = new Map<string, K>();
  return {
    find: (text) => {
      const remembered = known.get(text);
      if (remembered !== undefined) {
        return remembered;
      }
      const textDigest = hash("sha256", text, "buffer");
      let match: K | undefined;
      for (const { key, digest } of digests) {
        if (timingSafeEqual(textDigest, digest)) {
          match = key;
        }
      }
      if (match !== undefined) {
        known.set(text, match);
      }
      return match;
    },
  };
};

/** The rights of a configured key, or of a token. */
export interface ApiKey extends MethodRules {
  readonly name: string;
  /** SHA-256 of the key, in hex. Only the owner has the key itself. */
  readonly sha256: string;
  /** Names of the only chains that the key may use. Default: all. */
  readonly chains?: readonly string[] | undefined;
  /** From this time on, in ISO 8601, the key is refused. */
  readonly expires?: string | undefined;
  /** The client gets only answers that are proven on an agreed head. Default: any. */
  readonly require?: "proven" | undefined;
  /** Its limit of calls replaces the one for all keys. */
  readonly limit?: KeyLimit | undefined;
  /** Confirmations that a block needs before the key's clients see it. Default: none. */
  readonly confirmations?: number | undefined;
}

export interface KeyedTarget<K> {
  readonly key: K;
  /** The request's target without any key. */
  readonly target: string;
  /** The texts of the request that are keys. */
  readonly texts: ReadonlySet<string>;
}

/** The parts of a request that may have a key. */
export interface KeyedRequest {
  readonly headers: IncomingHttpHeaders;
  readonly method?: string | undefined;
  readonly url?: string | undefined;
}

const BEARER = /^Bearer +(\S+)$/i;
/** The characters between the parts of a header's value. */
const BETWEEN_TOKENS = /[\s,;=:"&?/]+/;
/** Positions of a key in a path: `/<chain>/<key>`, or `/<key>` with one chain. */
const KEY_POSITIONS = [2, 1] as const;

const decode = (part: string): string => {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
};

const bearerOf = ({ authorization = "" }: IncomingHttpHeaders): string | undefined => BEARER.exec(authorization)?.[1];

/** Node.js joins the values of a repeated header by commas. */
const apiKeysOf = ({ "x-api-key": header }: IncomingHttpHeaders): readonly string[] => {
  if (typeof header !== "string") {
    return [];
  }
  return header.includes(",") ? [header, ...header.split(",").map((text) => text.trim())] : [header];
};

/**
 * Whether a request without a valid key has a wrong one: in a header, or as the only part of the path beside the chain.
 * A request that is passed through has other parts in its path.
 */
export const hasWrongKey = (
  { headers, method, url = "/" }: KeyedRequest,
  isChainPath: (path: string) => boolean,
): boolean => {
  if (headers["x-api-key"] !== undefined || bearerOf(headers) !== undefined) {
    return true;
  }
  const [path = ""] = url.split("?", 1);
  const parts = path.split("/").filter((part) => part !== "");
  const remainder = isChainPath(`/${parts[0]}`) ? parts.slice(1) : parts;
  return remainder.length === 1 && (method === "POST" || headers.upgrade !== undefined);
};

/** Removes every header that contains a key. A request that is answered here needs no such change. */
export const removeKeyHeaders = ({ headers }: IncomingMessage, texts: ReadonlySet<string>): void => {
  delete headers["x-api-key"];
  for (const text of texts) {
    removeFromHeaders(headers, text);
  }
};

/** Finds the key of a request, and the target without it. */
export class RequestKeys<K> {
  readonly #keys: ApiKeys<K>;
  /** The last target without a key. Most requests of a client have the same target, and hashing its parts costs time. */
  #plainTarget: string | undefined;
  /** The results for that target, by the text of x-api-key. Only texts that are keys are here. */
  readonly #byHeader = new Map<string, KeyedTarget<K>>();

  constructor(keys: ApiKeys<K>) {
    this.#keys = keys;
  }

  /** Finds the key in x-api-key, then in the bearer token, then in the path. */
  take({ headers, url = "/" }: KeyedRequest): KeyedTarget<K> | undefined {
    const { "x-api-key": header, authorization } = headers;
    if (typeof header === "string" && authorization === undefined && url === this.#plainTarget) {
      // Hot path: most clients send one key in this header.
      const known = this.#byHeader.get(header);
      if (known !== undefined) {
        return known;
      }
    }
    const bearer = bearerOf(headers);
    const texts = new Set<string>();
    const found = [
      this.#find(apiKeysOf(headers), texts),
      this.#find(bearer === undefined ? [] : [bearer], texts),
      this.#findInPath(url, texts),
    ].find((key) => key !== undefined);
    if (found === undefined) {
      return undefined;
    }
    if (url !== this.#plainTarget) {
      return { key: found, texts, target: removeFromTarget(url, texts) };
    }
    const keyed = { key: found, texts, target: url };
    if (texts.size === 1 && texts.has(String(header))) {
      this.#byHeader.set(String(header), keyed);
    }
    return keyed;
  }

  /** Returns the key of the first text that has one. Adds the texts of keys to `found`. */
  #find(texts: readonly string[], found: Set<string>): K | undefined {
    let first: K | undefined;
    for (const text of texts) {
      const key = this.#keys.find(text);
      if (key !== undefined) {
        found.add(text);
        first ??= key;
      }
    }
    return first;
  }

  #findInPath(target: string, found: Set<string>): K | undefined {
    if (target === this.#plainTarget) {
      return undefined;
    }
    const [path = ""] = target.split("?", 1);
    const parts = path.split("/");
    const candidates = KEY_POSITIONS.map((position) => decode(parts[position] ?? "")).filter((part) => part !== "");
    const key = this.#find(candidates, found);
    if (key === undefined && parts.length <= KEY_POSITIONS.length + 1 && !target.includes("?")) {
      this.#plainTarget = target;
      this.#byHeader.clear();
    }
    return key;
  }
}

/** Removes the headers that contain this key as a whole word. */
const removeFromHeaders = (headers: IncomingHttpHeaders, text: string): void => {
  for (const [name, value] of Object.entries(headers)) {
    const values = Array.isArray(value) ? value : [value ?? ""];
    if (values.some((each) => each.includes(text) && each.split(BETWEEN_TOKENS).includes(text))) {
      delete headers[name];
    }
  }
};

/** Removes the parts of the path and the parameters of the query that are keys. */
const removeFromTarget = (target: string, texts: ReadonlySet<string>): string => {
  const [path = "", ...rest] = target.split("?");
  const isPlain = (part: string): boolean => !texts.has(decode(part));
  const plainPath = path.split("/").filter(isPlain).join("/");
  const query = rest
    .join("?")
    .split("&")
    .filter((parameter) => isPlain(parameter.slice(parameter.indexOf("=") + 1)))
    .join("&");
  const plain = plainPath === "" ? "/" : plainPath;
  return query === "" ? plain : `${plain}?${query}`;
};
