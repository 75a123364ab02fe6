import type { IncomingMessage } from "node:http";
import type { Caller } from "../core/context.ts";
import { type Grade, isAtLeast } from "../core/grade.ts";
import type { Awaitable } from "../jsonrpc/call.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import {
  type ApiKey,
  createApiKeys,
  hasWrongKey,
  type KeyedRequest,
  type KeyedTarget,
  RequestKeys,
  removeKeyHeaders,
} from "./apiKeys.ts";
import { clientOfAddress, createTrustedProxies } from "./clientAddress.ts";
import { ClientRules, type ClientRulesOptions } from "./clientRules.ts";
import type { Payments } from "./payment/payments.ts";
import { readToken, type TokenOptions, Tokens } from "./tokens.ts";

export interface AccessOptions extends ClientRulesOptions {
  /** If there is a key, every request must have one, or a token. */
  readonly keys: readonly ApiKey[];
  /** Accepts bearer tokens of this issuer too. */
  readonly jwt?: TokenOptions | undefined;
  /** Networks whose X-Forwarded-For header is trusted. */
  readonly trustedProxies: readonly string[];
  /** Clients without a key pay. Undefined: they are refused if there is a key. */
  readonly payments?: Payments | undefined;
}

/** What authentication reads of a request over HTTP, or of one of this process. */
export interface ClientRequest extends KeyedRequest {
  readonly socket: { readonly remoteAddress?: string | undefined };
}

/** The client of a request, and its permissions. */
export interface AuthenticatedCaller extends Caller {
  readonly connection: object;
  /** The client's address; of an IPv6 client its /64. */
  readonly address: string;
  /** SHA-256 of the client's key. Undefined if no key is configured. */
  readonly keyDigest: string | undefined;
  /** The rights of the client's token. Undefined for any other client. */
  readonly token?: ApiKey | undefined;
  /** The rules that the token was verified by. */
  readonly tokenRules?: string | undefined;
  /** Verifies the client's token again if it is time. Rejects with RpcError if it is not valid any more. Undefined without a token. */
  readonly verifyAgain?: (() => Promise<void>) | undefined;
  /** Names of the only chains that the client may use. Undefined: all. */
  readonly chains?: ReadonlySet<string> | undefined;
  /** The time at which the key or token expires. */
  readonly expiresAtMs?: number | undefined;
  /** The request's target without the key. */
  readonly target: string;
  /** Counts a request that is no call. Rejects with RpcError (429) above a limit. Undefined if the client has no limit. */
  readonly countRequest?: (() => Promise<void>) | undefined;
  /** Removes the key from the headers of a request that is sent to another server. Undefined without a key. */
  readonly removeKey?: ((request: IncomingMessage) => void) | undefined;
  /** Undefined if the client does not pay. */
  readonly payments?: Payments | undefined;
}

/** The use of a connection that stays open. */
export interface ConnectionUse {
  /** The name of its chain. Undefined if no chain has its path. */
  readonly chain: string | undefined;
  /** It has a subscription. */
  readonly isSubscribed: boolean;
  /** The grade that its answers need, by a header. */
  readonly needs: Grade | undefined;
}

/**
 * Authenticates a connection again by the current rules. Throws RpcError (401) if its key is not valid any more.
 * Throws another RpcError if the key may not use its chain or its subscriptions any more.
 */
export type Reauthorize = (admitted: AuthenticatedCaller, use: ConnectionUse) => AuthenticatedCaller;

const unauthorized = (message: string): RpcError => new RpcError(CODES.UNAUTHORIZED, message, { status: 401 });

const MISSING_KEY = "an API key is needed: header x-api-key, a bearer token, or the last part of the path";
const WRONG_KEY = "the API key is not valid";
const NEEDS_PROOF = "the API key requires proven answers, and has a subscription without proofs";
const BEHIND_HEAD = "the API key has confirmations, and has a subscription, which follows the head";
const OTHER_ISSUER = "the token was verified by other rules";
const EXPIRED_KEY = "the API key has expired";

/** Creates the error of a request that no payment opens: a WebSocket, or a request that is passed through. */
export const needsKey = (): RpcError =>
  unauthorized("only JSON-RPC by POST can be paid for: this request needs an API key");

/** Returns the error of a client that may not use a chain. */
export const findChainRefusal = (
  { chains }: Pick<AuthenticatedCaller, "chains">,
  chain: string | undefined,
): RpcError | undefined =>
  chains === undefined || chain === undefined || chains.has(chain)
    ? undefined
    : new RpcError(CODES.UNAUTHORIZED, `the API key may not use the chain ${chain}`, { status: 403 });

/** Access control by API keys, method rules and rate limits. */
export class Access {
  readonly #options: AccessOptions;
  readonly #requestKeys: RequestKeys<ApiKey>;
  readonly #addressOf: ReturnType<typeof createTrustedProxies>;
  readonly #rules: ClientRules;
  readonly #tokens: Tokens | undefined;

  constructor(options: AccessOptions) {
    const { keys } = options;
    this.#options = options;
    this.#requestKeys = new RequestKeys(createApiKeys(keys));
    this.#addressOf = createTrustedProxies(options.trustedProxies);
    this.#rules = new ClientRules(options);
    this.#tokens = options.jwt && new Tokens(options.jwt);
  }

  /**
   * Authenticates a request. Throws or rejects with RpcError (401) if the key or token is missing or wrong.
   * `isChainPath` separates a chain's path from a wrong key. Only a token that was not seen before needs a promise.
   */
  authenticate(request: ClientRequest, isChainPath: (path: string) => boolean): Awaitable<AuthenticatedCaller> {
    const forwarded = request.headers["x-forwarded-for"];
    const remote = request.socket.remoteAddress ?? "unknown";
    const address = clientOfAddress(this.#addressOf(remote, typeof forwarded === "string" ? forwarded : undefined));
    const { url = "/", socket } = request;
    if (this.#options.keys.length === 0 && this.#tokens === undefined) {
      return this.#admit(address, socket, undefined, url);
    }
    const keyed = this.#requestKeys.take(request);
    if (keyed !== undefined) {
      return this.#admitKeyed(address, socket, keyed);
    }
    const token = this.#tokens && readToken(request.headers);
    if (this.#tokens !== undefined && token !== undefined) {
      return this.#admitToken(address, this.#tokens, { token, target: url, connection: socket });
    }
    const isWrong = hasWrongKey(request, isChainPath);
    if (!isWrong && this.#options.payments !== undefined && request.method === "POST") {
      return this.#admit(address, socket, undefined, url);
    }
    throw this.#refuse(address, unauthorized(isWrong ? WRONG_KEY : MISSING_KEY));
  }

  #admitKeyed(address: string, connection: object, { key, target, texts }: KeyedTarget<ApiKey>): AuthenticatedCaller {
    const admitted = this.#admit(address, connection, key, target);
    return { ...admitted, removeKey: (request) => removeKeyHeaders(request, texts) };
  }

  #admitToken(
    address: string,
    tokens: Tokens,
    { token, target, connection }: { readonly token: string; readonly target: string; readonly connection: object },
  ): Awaitable<AuthenticatedCaller> {
    const admit = (key: ApiKey): AuthenticatedCaller => ({
      ...this.#admitKeyed(address, connection, { key, target, texts: new Set([token]) }),
      token: key,
      tokenRules: tokens.rules,
      verifyAgain: this.#createRecheck(tokens, token),
    });
    const known = tokens.find(token);
    return known === undefined
      ? tokens.verify(token).then(admit, (error: unknown) => {
          throw error instanceof RpcError ? this.#refuse(address, error) : error;
        })
      : admit(known);
  }

  /** Each connection has its own time: there may be more connections than tokens that are known as verified. */
  #createRecheck(tokens: Tokens, token: string): () => Promise<void> {
    let dueMs = performance.now() + tokens.recheckMs;
    return async () => {
      if (performance.now() >= dueMs) {
        dueMs = performance.now() + tokens.recheckMs;
        await this.#verifyAgain(tokens, token);
      }
    };
  }

  async #verifyAgain(tokens: Tokens, token: string): Promise<void> {
    if (tokens.find(token) !== undefined) {
      return;
    }
    try {
      await tokens.verify(token);
    } catch (error) {
      // Without the issuer's keys, nothing is known about the token.
      if (!(error instanceof RpcError) || error.status === 401) {
        throw error instanceof RpcError ? this.#rules.reject("key", error) : error;
      }
    }
  }

  /** Counts a refused request against the client's address. */
  #refuse(address: string, error: RpcError): RpcError {
    this.#rules.chargeOf(address, undefined)?.(1, "key");
    return this.#rules.reject("key", error);
  }

  readonly reauthorize: Reauthorize = (before, { chain, isSubscribed, needs }) => {
    const key = this.#currentKey(before);
    const admitted = this.#admit(before.address, before.connection, key, before.target);
    const refusal = findChainRefusal(admitted, chain);
    if (refusal !== undefined) {
      throw this.#rules.reject("key", refusal);
    }
    if (isSubscribed) {
      this.#rules.checkMethod("eth_subscribe", key);
      if ((admitted.confirmations ?? 0) > 0) {
        throw this.#rules.reject("key", new RpcError(CODES.UNAUTHORIZED, BEHIND_HEAD, { status: 403 }));
      }
      if (![needs, before.needs].some((earlier) => isAtLeast(earlier, admitted.needs ?? "stated"))) {
        throw this.#rules.reject("key", new RpcError(CODES.UNAUTHORIZED, NEEDS_PROOF, { status: 403 }));
      }
    }
    const { token, tokenRules, verifyAgain } = before;
    return { ...admitted, token, tokenRules, verifyAgain };
  };

  #currentKey({ keyDigest, token, tokenRules }: AuthenticatedCaller): ApiKey | undefined {
    const { keys } = this.#options;
    if (token !== undefined && this.#tokens !== undefined) {
      if (tokenRules !== this.#tokens.rules) {
        throw this.#rules.reject("key", unauthorized(OTHER_ISSUER));
      }
      return token;
    }
    const key = keys.find(({ sha256 }) => sha256 === keyDigest);
    const needsOne = keys.length > 0 || this.#tokens !== undefined || this.#options.payments !== undefined;
    if (needsOne && key === undefined) {
      throw this.#rules.reject("key", unauthorized(keyDigest === undefined ? MISSING_KEY : WRONG_KEY));
    }
    return key;
  }

  #admit(address: string, connection: object, key: ApiKey | undefined, target: string): AuthenticatedCaller {
    const grant = key && this.#rules.grantOf(key);
    if (grant?.expiresAtMs !== undefined && grant.expiresAtMs <= Date.now()) {
      throw this.#refuse(address, unauthorized(EXPIRED_KEY));
    }
    const charge = this.#rules.chargeOf(address, key);
    return {
      clientId: key === undefined ? address : key.name,
      connection,
      address,
      keyDigest: key?.sha256,
      chains: grant?.chains,
      expiresAtMs: grant?.expiresAtMs,
      target,
      authorize: this.#rules.createPermit(address, key, charge),
      charge,
      countRequest: charge && (() => this.#rules.countCall(address, key)),
      usage: grant?.usage,
      budget: grant?.budget,
      confirmations: key?.confirmations,
      needs: key?.require,
      payments: key === undefined ? this.#options.payments : undefined,
    };
  }
}

/** Admits everybody: no keys, no limits, no method rules. */
export const allowEveryone = ({ socket, url = "/" }: ClientRequest): AuthenticatedCaller => {
  const address = clientOfAddress(socket.remoteAddress ?? "unknown");
  return {
    clientId: address,
    connection: socket,
    address,
    keyDigest: undefined,
    target: url,
    authorize: undefined,
    charge: undefined,
    usage: undefined,
    confirmations: undefined,
  };
};
