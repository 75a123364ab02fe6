/**
 * All codes of forebay's own errors.
 * Sources: JSON-RPC 2.0, section 5.1; EIP-1474; geth, internal/ethapi/errors.go; x402, transport over JSON-RPC (MCP).
 */
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
  PAYMENT_REQUIRED: 402,
  /** EIP-7966: a node accepted the transaction, but there was no receipt within the timeout. */
  NOT_CONFIRMED: 4,
  /** EIP-7966: a node accepted the transaction, but its sender cannot pay for it now. */
  QUEUED: 5,
  /** EIP-7966: a node accepted the transaction, but one with a lower nonce is missing. */
  NONCE_GAP: 6,
} as const;

export interface RpcErrorOptions {
  /** JSON value of `data`; undefined for no `data`. */
  readonly data?: unknown;
  /** HTTP status if the call is not part of a batch. A batch always has 200. */
  readonly status?: number;
  readonly retryAfterSeconds?: number | undefined;
  readonly cause?: unknown;
  /** UTF-8 JSON text of a node's error object. It is forwarded byte for byte. */
  readonly text?: Uint8Array;
}

/** The only error that a client sees unchanged. Any other error is logged and returned as "Internal error". */
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

/** Creates the error of an invalid parameter. */
export const invalidParams = (message: string): RpcError => new RpcError(CODES.INVALID_PARAMS, message);

/** Creates the error of a request that is invalid as a whole, or of a call that is none. */
export const invalidRequest = (message: string, status?: number): RpcError =>
  new RpcError(CODES.INVALID_REQUEST, `Invalid request: ${message}`, status === undefined ? {} : { status });

/** Creates the error (503) for an overload or if no node is available. */
export const unavailable = (message: string, retryAfterSeconds = 1): RpcError =>
  new RpcError(CODES.INTERNAL, message, { status: 503, retryAfterSeconds });

/** Creates the error (503) of work that finds no room in the memory budget. */
export const overBudget = (): RpcError => unavailable("the server is over its memory budget");

/** Creates the error (504) of a node that did not respond in time. */
export const upstreamTimeout = (message: string): RpcError => new RpcError(CODES.INTERNAL, message, { status: 504 });
