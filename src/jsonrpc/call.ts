/** One JSON-RPC call, as it came or as it goes out. `paramsText` is the UTF-8 JSON text of `params`, the caller's own where it is his. */
export interface Call {
  readonly method: string;
  readonly params: readonly unknown[];
  readonly paramsText: Uint8Array;
}

/** What answers a call: `body` is UTF-8 JSON text of the `result`, spliced into a response and never parsed on the way. */
export interface Reply {
  readonly body: Uint8Array | AsyncIterable<Uint8Array>;
}

const encoder = new TextEncoder();

/** A call of our own; `params` must be JSON values (quantities already hex). */
export const createCall = (method: string, params: readonly unknown[]): Call => ({
  method,
  params,
  paramsText: encoder.encode(JSON.stringify(params)),
});
