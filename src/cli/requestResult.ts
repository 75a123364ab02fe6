import { request } from "undici";
import { timeoutSignal } from "../core/lazySignal.ts";
import type { NodeErrorKind } from "../core/node.ts";
import { errorKind, mayQuote } from "../nodes/errorKind.ts";
import { parseNodeUrl } from "../nodes/nodeConfig.ts";

export interface ResultTarget {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** Sends a request or a batch. Rejects after `timeoutMs`. Makes no retries. `response`: undefined if it is no JSON. */
export const requestOnce = async (
  node: ResultTarget,
  body: object,
  timeoutMs: number,
): Promise<{ readonly statusCode: number; readonly response: unknown }> => {
  const { origin, path, headers } = parseNodeUrl(node.url, node.headers);
  const { statusCode, body: received } = await request(origin + path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
    signal: timeoutSignal(timeoutMs),
  });
  return { statusCode, response: await received.json().catch(() => undefined) };
};

/** A response without a result. */
export class NoResultError extends Error {
  override readonly name = "NoResultError";
  readonly kind: NodeErrorKind;

  constructor(method: string, statusCode: number, response: unknown) {
    super(`the response to ${method} has HTTP status ${statusCode} and no result`);
    const { code, message }: { code?: unknown; message?: unknown } = Object(Object(response).error);
    this.kind = errorKind(typeof code === "number" ? code : undefined, String(message), statusCode, mayQuote(method));
  }
}

/** Sends one request. Rejects if the response has no result, or after `timeoutMs`. Makes no retries. */
export const requestResult = async (
  node: ResultTarget,
  method: string,
  timeoutMs: number,
  params: readonly unknown[] = [],
): Promise<unknown> => {
  const { statusCode, response } = await requestOnce(node, { jsonrpc: "2.0", id: 1, method, params }, timeoutMs);
  if (typeof response === "object" && response !== null && "result" in response) {
    return response.result;
  }
  throw new NoResultError(method, statusCode, response);
};
