import { request } from "undici";
import { parseNodeUrl } from "./nodeUrl.ts";

export interface ResultTarget {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** Sends one request without params. Rejects if the response has no result, or after `timeoutMs`. Makes no retries. */
export const requestResult = async (node: ResultTarget, method: string, timeoutMs: number): Promise<unknown> => {
  const { origin, path, headers } = parseNodeUrl(node.url, node.headers);
  const { statusCode, body } = await request(origin + path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: [] }),
    signal: AbortSignal.timeout(timeoutMs),
  });
  const response: unknown = await body.json().catch(() => undefined);
  if (typeof response === "object" && response !== null && "result" in response) {
    return response.result;
  }
  throw new Error(`the response to ${method} has HTTP status ${statusCode} and no result`);
};
