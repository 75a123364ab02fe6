import { MustForwardError } from "../evm/runs/evmWorkers.ts";
import { RpcError } from "../jsonrpc/rpcError.ts";

/** An error as plain data. A stack and a cause stay in the process that they are of. */
export type PlainError =
  | { readonly kind: "rpc"; readonly code: number; readonly message: string; readonly options: RpcErrorParts }
  | { readonly kind: "mustForward" | "other"; readonly message: string };

type RpcErrorParts = Pick<RpcError, "data" | "status" | "retryAfterSeconds" | "text">;

/** Converts an error to plain data, so that another process can throw it. */
export const toPlainError = (error: unknown): PlainError => {
  if (error instanceof RpcError) {
    const { code, message, data, status, retryAfterSeconds, text } = error;
    return { kind: "rpc", code, message, options: { data, status, retryAfterSeconds, text } };
  }
  const message = error instanceof Error ? error.message : String(error);
  return { kind: error instanceof MustForwardError ? "mustForward" : "other", message };
};

/** Creates the error that another process has thrown. */
export const fromPlainError = (error: PlainError): Error => {
  if (error.kind === "rpc") {
    const { retryAfterSeconds, text, ...options } = error.options;
    return new RpcError(error.code, error.message, {
      ...options,
      ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
      ...(text !== undefined && { text }),
    });
  }
  return error.kind === "mustForward" ? new MustForwardError(error.message) : new Error(error.message);
};
