/** One JSON-RPC call, as it came or as it goes out. `paramsText` is the UTF-8 JSON text of `params`, the caller's own where it is his. */
export interface Call {
  readonly method: string;
  readonly params: readonly unknown[];
  readonly paramsText: Uint8Array;
}

/** What answers a call: `body` is UTF-8 JSON text of the `result`, spliced into a response and never parsed on the way. */
export interface Reply {
  readonly body: Uint8Array | AsyncIterable<Uint8Array>;
  /** The body compressed, where that is kept beside it: see `spliceGzip`. */
  readonly deflated?: () => Promise<Deflated>;
}

/** Bytes as a raw DEFLATE stream (RFC 1951) that ends at a byte boundary and has no last block, so that more can follow. */
export interface Deflated {
  readonly bytes: Uint8Array;
  /** Of the plain bytes. */
  readonly crc32: number;
  /** Of the plain bytes. */
  readonly length: number;
}

const encoder = new TextEncoder();

/** A call of our own; `params` must be JSON values (quantities already hex). */
export const createCall = (method: string, params: readonly unknown[]): Call => ({
  method,
  params,
  paramsText: encoder.encode(JSON.stringify(params)),
});
