import type { RpcError } from "./rpcError.ts";

/** Part of a response body: bytes, or a stream that is read after the parts before it. */
export type Chunk = Uint8Array | AsyncIterable<Uint8Array>;

const HEAD = Buffer.from('{"jsonrpc":"2.0","id":');
const RESULT = Buffer.from(',"result":');
const ERROR = Buffer.from(',"error":');
const END = Buffer.from("}");

export const isStream = (chunk: Chunk): chunk is AsyncIterable<Uint8Array> => !(chunk instanceof Uint8Array);

/** Formats a success response. The result's bytes are inserted unchanged. */
export const formatResult = (id: Uint8Array, body: Chunk): readonly Chunk[] => [HEAD, id, RESULT, body, END];

const formatError = ({ code, message, data, text }: RpcError): Uint8Array =>
  text ?? Buffer.from(JSON.stringify({ code, message, data }));

/** Formats an error response. The text of a node's error is inserted unchanged. */
export const formatErrorResponse = (id: Uint8Array, error: RpcError): readonly Uint8Array[] => [
  HEAD,
  id,
  ERROR,
  formatError(error),
  END,
];
