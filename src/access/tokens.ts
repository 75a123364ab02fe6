import { hash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type * as Jose from "jose";
import { LRUCache } from "lru-cache";
import { CODES, RpcError, unavailable } from "../jsonrpc/rpcError.ts";
import { Pieces } from "../limits/pieces.ts";
import type { ApiKey } from "./apiKeys.ts";

export interface TokenOptions {
  /** URL of the issuer's public keys (JSON Web Key Set). */
  readonly jwksUrl: string;
  readonly issuer: string;
  readonly audience?: string | undefined;
  /** A verified token is verified again after this time, with new keys, so that a key that its issuer withdrew is noticed. */
  readonly recheckMs: number;
}

/**
 * Signatures with a public key (RFC 8725, section 3.1). The issuer's keys name the one that they are for. A shared secret would have
 * to be in the configuration.
 */
const ALGORITHMS = ["ES256", "ES384", "ES512", "EdDSA", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512"];

const MAX_TOKENS = 10_000;
const MAX_SUBJECT_LENGTH = 128;
/** ECMA-262, section 21.4.1.1: the last time of a Date. */
const MAX_DATE_MS = 8.64e15;
const MAX_KEY_SET_BYTES = 1024 * 1024;
/** Three parts of base64url (RFC 7515, section 7.1). */
const BEARER_TOKEN = /^Bearer +([\w-]+\.[\w-]+\.[\w-]+)$/i;

/** Reads the bearer token of a request if it has the form of a JWT. */
export const readToken = ({ authorization = "" }: IncomingHttpHeaders): string | undefined =>
  BEARER_TOKEN.exec(authorization)?.[1];

const refused = (message: string): RpcError => new RpcError(CODES.UNAUTHORIZED, message, { status: 401 });

/** Reads a claim that lists names. Throws if it has another form: a rule must not be ignored. */
const readNames = (claims: Jose.JWTPayload, name: string): readonly string[] | undefined => {
  const value = claims[name];
  if (value === undefined) {
    return undefined;
  }
  if (!Array.isArray(value) || value.some((item) => typeof item !== "string")) {
    throw refused(`the claim ${name} of the token is not a list of names`);
  }
  return value.map(String);
};

/** Returns the rights of a token in the form of a key. Its name cannot be that of a configured key. */
const toKey = (token: string, claims: Jose.JWTPayload): ApiKey => {
  const { sub, exp } = claims;
  if (typeof sub !== "string" || sub === "" || sub.length > MAX_SUBJECT_LENGTH) {
    throw refused(`the token needs a subject of 1 to ${MAX_SUBJECT_LENGTH} characters`);
  }
  return {
    name: `token:${sub}`,
    sha256: hash("sha256", token),
    allow: readNames(claims, "methods"),
    chains: readNames(claims, "chains"),
    expires: exp === undefined ? undefined : new Date(Math.min(exp * 1_000, MAX_DATE_MS)).toISOString(),
  };
};

/** Reads the issuer's keys. Rejects if they are larger than the limit: their server may be another than the operator's. */
const fetchKeySet: Jose.FetchImplementation = async (url, options) => {
  const response = await fetch(url, options);
  const pieces = new Pieces();
  for await (const chunk of response.body ?? []) {
    pieces.add(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length));
    if (pieces.bytes > MAX_KEY_SET_BYTES) {
      throw new Error(`the key set is larger than ${MAX_KEY_SET_BYTES} bytes`);
    }
  }
  return new Response(new Uint8Array(pieces.join()), { status: response.status });
};

/** Verifies JSON Web Tokens (RFC 7519) with the public keys of their issuer. */
export class Tokens {
  readonly #options: TokenOptions;
  readonly #verified: LRUCache<string, ApiKey>;
  #loaded: Promise<{ readonly jose: typeof Jose; readonly keys: Jose.JWTVerifyGetKey }> | undefined;

  constructor(options: TokenOptions) {
    this.#options = options;
    this.#verified = new LRUCache({ max: MAX_TOKENS, ttl: options.recheckMs });
  }

  get recheckMs(): number {
    return this.#options.recheckMs;
  }

  /** Equal if tokens are verified in the same way. */
  get rules(): string {
    const { jwksUrl, issuer, audience } = this.#options;
    return JSON.stringify([jwksUrl, issuer, audience]);
  }

  /** Returns the rights of a token that was verified. The caller checks whether it has expired. */
  find(token: string): ApiKey | undefined {
    return this.#verified.get(token);
  }

  /** Verifies a token. Rejects with RpcError: 401 for a bad token, 503 if the issuer's keys cannot be read. */
  async verify(token: string): Promise<ApiKey> {
    this.#loaded ??= this.#load();
    const { jose, keys } = await this.#loaded;
    const { issuer, audience } = this.#options;
    const { payload } = await jose
      .jwtVerify(token, keys, {
        issuer,
        algorithms: ALGORITHMS,
        requiredClaims: ["sub", "exp"],
        ...(audience !== undefined && { audience }),
      })
      .catch((error: unknown) => {
        throw this.#toRpcError(jose, error);
      });
    const key = toKey(token, payload);
    this.#verified.set(token, key);
    return key;
  }

  async #load() {
    const jose = await import("jose");
    const { jwksUrl, recheckMs } = this.#options;
    const options = { [jose.customFetch]: fetchKeySet, cacheMaxAge: recheckMs };
    return { jose, keys: jose.createRemoteJWKSet(new URL(jwksUrl), options) };
  }

  #toRpcError({ errors }: typeof Jose, error: unknown): RpcError {
    if (error instanceof errors.JWTExpired) {
      return refused("the token has expired");
    }
    if (error instanceof errors.JWTClaimValidationFailed) {
      return refused(`the token is not valid: claim ${error.claim}`);
    }
    const isBad =
      error instanceof errors.JWSSignatureVerificationFailed ||
      error instanceof errors.JWSInvalid ||
      error instanceof errors.JWTInvalid ||
      error instanceof errors.JOSEAlgNotAllowed ||
      error instanceof errors.JWKSNoMatchingKey ||
      error instanceof errors.JOSENotSupported;
    return isBad ? refused("the token is not valid") : unavailable("the keys of the token's issuer cannot be read");
  }
}
