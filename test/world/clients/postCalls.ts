import { type Dispatcher, request } from "undici";
import type { ChainCall } from "../../support/servers/sealedChain.ts";

export interface RpcResponse {
  readonly id: unknown;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string };
}

/** The responses to one request, in the order of its calls. `failure` says why there is none. */
export interface PostedCalls {
  readonly startMs: number;
  readonly endMs: number;
  readonly headers: Dispatcher.ResponseData["headers"];
  readonly responses: readonly RpcResponse[];
  readonly failure: string | undefined;
}

const TIMEOUT_MS = 20_000;

const isResponse = (value: unknown): value is RpcResponse =>
  typeof value === "object" && value !== null && ("result" in value || "error" in value);

/** Sends calls, one alone or several as a batch. One response to a batch, for example an error, is that of each call. */
export const postCalls = async (
  url: string,
  calls: readonly ChainCall[],
  dispatcher: Dispatcher,
): Promise<PostedCalls> => {
  const items = calls.map((call, id) => ({ jsonrpc: "2.0", id, ...call }));
  const startMs = performance.now();
  const failed = (failure: string, headers: PostedCalls["headers"] = {}): PostedCalls => ({
    ...{ startMs, endMs: performance.now(), headers, responses: [], failure },
  });
  try {
    const { statusCode, headers, body } = await request(url, {
      ...{ method: "POST", dispatcher, headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS },
      headers: { "content-type": "application/json" },
      body: JSON.stringify(items.length === 1 ? items[0] : items),
    });
    const text = await body.text();
    const endMs = performance.now();
    const parsed: unknown = text.startsWith("{") || text.startsWith("[") ? JSON.parse(text) : undefined;
    const found = [parsed].flat().filter(isResponse);
    if (found.length === 0) {
      return failed(`HTTP ${statusCode} without a JSON-RPC response`, headers);
    }
    const alone = Array.isArray(parsed) ? undefined : found[0];
    const responses = items.map(({ id }): RpcResponse => {
      const own = found.find((response) => response.id === id) ?? alone;
      return own ?? { id, error: { code: 0, message: "the batch has no response to this call" } };
    });
    return { startMs, endMs, headers, responses, failure: undefined };
  } catch (error) {
    return failed(error instanceof Error ? `${Reflect.get(error, "code") ?? error.name}` : String(error));
  }
};
