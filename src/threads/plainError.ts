import { MustForwardError } from "../core/mustForwardError.ts";
import { RpcError } from "../jsonrpc/rpcError.ts";

/** An error as plain data. A cause stays on the side that it is of. */
export type PlainError =
  | { readonly kind: "rpc"; readonly code: number; readonly message: string; readonly options: RpcErrorParts }
  | { readonly kind: "mustForward"; readonly message: string }
  | { readonly kind: "other"; readonly message: string; readonly stack: string | undefined };

type RpcErrorParts = Pick<RpcError, "data" | "status" | "retryAfterSeconds" | "text">;

export const toPlainError = (error: unknown): PlainError => {
  if (error instanceof RpcError) {
    const { code, message, data, status, retryAfterSeconds, text } = error;
    return { kind: "rpc", code, message, options: { data, status, retryAfterSeconds, text } };
  }
  if (error instanceof MustForwardError) {
    return { kind: "mustForward", message: error.message };
  }
  return error instanceof Error
    ? { kind: "other", message: error.message, stack: error.stack }
    : { kind: "other", message: String(error), stack: undefined };
};

export const fromPlainError = (plain: PlainError): Error => {
  if (plain.kind === "rpc") {
    const { retryAfterSeconds, text, ...options } = plain.options;
    return new RpcError(plain.code, plain.message, {
      ...options,
      ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
      ...(text !== undefined && { text }),
    });
  }
  if (plain.kind === "mustForward") {
    return new MustForwardError(plain.message);
  }
  const error = new Error(plain.message);
  if (plain.stack !== undefined) {
    error.stack = plain.stack;
  }
  return error;
};
