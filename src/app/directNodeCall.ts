import type { View } from "../core/view.ts";
import { createCall } from "../jsonrpc/call.ts";
import type { Upstreams } from "./upstreams.ts";

const TIMEOUT_MS = 5_000;
const decoder = new TextDecoder();

/** What forebay must know itself is read from a node, past table and cache. The result as JSON value. */
export const directNodeCall =
  (upstreams: Upstreams, view: () => View) =>
  async (method: string, params: readonly unknown[]): Promise<unknown> => {
    const context = {
      view: view(),
      signal: AbortSignal.timeout(TIMEOUT_MS),
      deadlineMs: performance.now() + TIMEOUT_MS,
      clientId: "forebay",
      bypassCache: true,
    };
    const { body } = await upstreams.quiet.request(
      { ...createCall(method, params), retention: "never", canonicalParams: "" },
      context,
    );
    if (!(body instanceof Uint8Array)) throw new Error(`${method} was answered with a stream`);
    return JSON.parse(decoder.decode(body));
  };
