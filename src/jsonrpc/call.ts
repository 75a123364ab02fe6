/**
 * One JSON-RPC call. `paramsText` is the UTF-8 JSON text of `params`: the client's own bytes if the call is a client's.
 */
export interface Call {
  readonly method: string;
  readonly params: readonly unknown[];
  readonly paramsText: Uint8Array;
}

/**
 * The reply to a call. `body` is the UTF-8 JSON text of the `result`. It is spliced into a response without parsing.
 */
export interface Reply {
  readonly body: Uint8Array | AsyncIterable<Uint8Array>;
  /** Returns the compressed body, if it is cached beside the body: see `spliceGzip`. */
  readonly deflated?: () => Promise<Deflated>;
}

/**
 * A raw DEFLATE stream (RFC 1951). It ends at a byte boundary without a final block, so that more blocks can follow.
 */
export interface Deflated {
  readonly bytes: Uint8Array;
  /** CRC-32 of the plain bytes. */
  readonly crc32: number;
  /** Number of plain bytes. */
  readonly length: number;
}

const encoder = new TextEncoder();

/** Creates a call of forebay itself. `params` are JSON values; quantities are hex strings. */
export const createCall = (method: string, params: readonly unknown[]): Call => ({
  method,
  params,
  paramsText: encoder.encode(JSON.stringify(params)),
});
