import { asText } from "../json/jsonBytes.ts";

/** One JSON-RPC call. */
export interface Call {
  readonly method: string;
  readonly params: readonly unknown[];
  /** The client's own bytes of `params`. A call of forebay has none: see `paramsTextOf`. */
  readonly paramsText?: Uint8Array | undefined;
  /** The length of `paramsText`, without creating it. */
  readonly paramsBytes?: number | undefined;
  /** The same as text. */
  readonly paramsJson?: string | undefined;
  /** A write, or a method outside the table. It is never coalesced or hedged, and sent again only if a node refused it for its load. */
  readonly write?: boolean;
}

/**
 * The reply to a call. `body` is the UTF-8 JSON text of the `result`. It is spliced into a response without parsing.
 */
export interface Reply {
  readonly body: Uint8Array | AsyncIterable<Uint8Array>;
}

/** Creates a call of forebay itself. `params` are JSON values; quantities are hex strings. */
export const createCall = (method: string, params: readonly unknown[]): Call => ({ method, params });

/** Returns the UTF-8 JSON text of the params. A call that the cache answers never needs it. */
export const paramsTextOf = (call: Call): Uint8Array =>
  // Reading `params` would parse them.
  call.paramsText ?? Buffer.from(JSON.stringify(call.params));

/** Returns the JSON text of the params. */
export const paramsJsonOf = (call: Call): string => {
  const { paramsJson } = call;
  if (paramsJson !== undefined) {
    return paramsJson;
  }
  return call.paramsText === undefined ? JSON.stringify(call.params) : asText(call.paramsText);
};

/** A value that is known now, or later. A function that returns it awaits nothing if nothing has to be awaited. */
export type Awaitable<T> = T | Promise<T>;

/** Applies a function to a value: at once if the value is known, else when it is. */
export const whenKnown = <T, U>(value: Awaitable<T>, apply: (value: T) => Awaitable<U>): Awaitable<U> =>
  value instanceof Promise ? value.then(apply) : apply(value);
