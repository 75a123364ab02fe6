import { ownContext } from "../core/context.ts";
import { timeoutSignal } from "../core/lazySignal.ts";
import type { NodeSource } from "../core/rpcSource.ts";
import type { View } from "../core/view.ts";
import { parseJson } from "../json/jsonBytes.ts";
import { createCall } from "../jsonrpc/call.ts";

const TIMEOUT_MS = 5_000;

/** A node that lacks a transaction may not have received it: the others are asked too. */
const FOUND_BY_ANY: ReadonlySet<string> = new Set(["eth_getTransactionByHash"]);

/**
 * Creates the call function of forebay itself. Its calls go to one of the nodes, without method table and cache.
 * It returns the result as a JSON value. It rejects after TIMEOUT_MS.
 */
export const directNodeCall =
  (nodes: NodeSource, view: () => View) =>
  async (method: string, params: readonly unknown[]): Promise<unknown> => {
    const context = ownContext("forebay", view(), {
      signal: timeoutSignal(TIMEOUT_MS),
      deadlineMs: performance.now() + TIMEOUT_MS,
      bypassCache: true,
    });
    const { body } = await nodes.request(
      { ...createCall(method, params), retention: "never", canonicalParams: "", nullIsError: FOUND_BY_ANY.has(method) },
      context,
    );
    if (!(body instanceof Uint8Array)) {
      throw new Error(`the response to ${method} is a stream`);
    }
    return parseJson(body);
  };
