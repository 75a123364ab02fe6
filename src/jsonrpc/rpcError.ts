/** Every code that forebay itself gives. Sources: JSON-RPC 2.0 section 5.1, EIP-1474, geth's internal/ethapi/errors.go. */
export const CODES = {
  PARSE: -32700,
  INVALID_REQUEST: -32600,
  METHOD_NOT_FOUND: -32601,
  INVALID_PARAMS: -32602,
  INTERNAL: -32603,
  SERVER: -32000,
  UNAUTHORIZED: -32001,
  RESPONSE_TOO_LARGE: -32003,
  RATE_LIMITED: -32005,
} as const;

export interface RpcErrorOptions {
  /** JSON value; absent means that the error has no `data`. */
  readonly data?: unknown;
  /** HTTP status of a single call; a batch is always 200. */
  readonly status?: number;
  readonly retryAfterSeconds?: number;
  readonly cause?: unknown;
  /** UTF-8 JSON text of the whole error object, where a node gave it: it is passed on byte for byte. */
  readonly text?: Uint8Array;
}

/** The one error that reaches a caller as it is; anything else is logged and goes out as "Internal error". */
export class RpcError extends Error {
  override readonly name: string = "RpcError";
  readonly code: number;
  readonly data: unknown;
  readonly status: number;
  readonly retryAfterSeconds: number | undefined;
  readonly text: Uint8Array | undefined;

  constructor(code: number, message: string, options: RpcErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.data = options.data;
    this.status = options.status ?? 200;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.text = options.text;
  }
}

export const invalidParams = (message: string): RpcError => new RpcError(CODES.INVALID_PARAMS, message);

/** Nothing can answer now: no node, or too much waiting. */
export const unavailable = (message: string, retryAfterSeconds = 1): RpcError =>
  new RpcError(CODES.INTERNAL, message, { status: 503, retryAfterSeconds });

export const upstreamTimeout = (message: string): RpcError => new RpcError(CODES.INTERNAL, message, { status: 504 });
