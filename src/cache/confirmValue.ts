import { isNull } from "../core/isNull.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import type { Awaitable } from "../jsonrpc/awaitable.ts";
import type { ValueSource } from "./cacheEntry.ts";
import { isSameResult, isSingleValue, variesByNode } from "./sameResult.ts";
import type { StatedEntry, StatedValues } from "./statedValues.ts";

/**
 * The comparison of a value with the response of another origin. `equal`: both state the response. `different`: it is not known
 * which one is right, so that neither may be cached. `unanswered`: no other origin has responded.
 */
export interface Confirmation {
  readonly response: RpcResponse;
  readonly outcome: "equal" | "different" | "unanswered";
}

export interface ConfirmOptions {
  readonly method: string;
  /** The value whose life is over. */
  readonly earlier: StatedEntry;
  readonly stated: StatedValues;
  /** Sends the request. Nodes of these origins are asked only if no other can answer, the first of them first. */
  ask(avoidedOrigins: readonly string[]): Awaitable<RpcResponse>;
}

interface Statement {
  readonly response: RpcResponse;
  readonly body: Uint8Array;
  readonly source: ValueSource;
}

const statementOf = (response: RpcResponse | undefined, stated: StatedValues): Statement | undefined => {
  const source = stated.sourceOf(response?.node);
  const isUsable = response?.body instanceof Uint8Array && response.verified !== false && !isNull(response);
  return isUsable && source !== undefined && response.body instanceof Uint8Array
    ? { response, body: response.body, source }
    : undefined;
};

/** Asks a third origin, or the first one again, and decides by the majority. */
const decide = async (options: ConfirmOptions, second: Statement): Promise<Confirmation> => {
  const { method, earlier, stated, ask } = options;
  const first = earlier.source;
  const markLiar = ({ node }: ValueSource): void => {
    if (isSingleValue(method)) {
      stated.markLiar(node);
    }
  };
  const asked = Promise.try(() => ask([first.origin, second.source.origin]));
  const third = statementOf(await asked.catch(() => undefined), stated);
  if (third === undefined || third.source.origin === second.source.origin) {
    return { response: second.response, outcome: "different" };
  }
  if (isSameResult(method, third.body, second.body)) {
    // Two origins agree, or the first one has changed its statement about a block that cannot change.
    markLiar(first);
    return { response: second.response, outcome: "equal" };
  }
  if (!isSameResult(method, third.body, earlier.body)) {
    return { response: second.response, outcome: "different" };
  }
  if (third.source.origin !== first.origin) {
    markLiar(second.source);
    return { response: third.response, outcome: "equal" };
  }
  const { response } = stated.preferred(first.origin, second.source.origin) === first.origin ? third : second;
  return { response, outcome: "different" };
};

/**
 * Decides about a value that another origin does not have. The node may have pruned it: the value is served on, unless a third
 * origin has none either.
 */
const keepEarlier = async ({ earlier, stated, ask }: ConfirmOptions, absent: RpcResponse): Promise<Confirmation> => {
  const { body, block, source } = earlier;
  const origins = [source.origin, stated.sourceOf(absent.node)?.origin ?? source.origin];
  const third = await Promise.try(() => ask(origins)).catch(() => undefined);
  const origin = stated.sourceOf(third?.node)?.origin;
  return third !== undefined && isNull(third) && origin !== undefined && !origins.includes(origin)
    ? { response: third, outcome: "different" }
    : { response: { ...absent, body, node: source.node, ...(block && { block }) }, outcome: "unanswered" };
};

/** Asks another origin for a value whose life is over, and compares both. A difference is decided by a third statement. */
export const confirmValue = async (options: ConfirmOptions): Promise<Confirmation> => {
  const { method, earlier, stated, ask } = options;
  const response = await ask([earlier.source.origin]);
  if (isNull(response)) {
    return keepEarlier(options, response);
  }
  const second = statementOf(response, stated);
  if (second === undefined || second.source.origin === earlier.source.origin) {
    return { response, outcome: "unanswered" };
  }
  if (isSameResult(method, second.body, earlier.body)) {
    return { response, outcome: "equal" };
  }
  return variesByNode(method) ? { response, outcome: "unanswered" } : decide(options, second);
};
