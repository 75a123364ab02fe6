import type { Hash } from "../../../src/ethereum/hex.ts";

export interface CallResult {
  readonly id: number;
  readonly result?: unknown;
  readonly error?: { readonly message: string };
}

export interface CallsAtBlock {
  /** The block from whose view all calls were answered. */
  readonly hash: Hash;
  /** In the order of the calls. */
  readonly results: readonly CallResult[];
}

/**
 * Sends calls at one tag in one batch, behind a request for the block itself.
 * Undefined if the block was replaced, or is not known yet.
 */
export const callAtOneBlock = async (
  url: string,
  tag: string,
  calls: readonly { readonly method: string; readonly params: readonly unknown[] }[],
): Promise<CallsAtBlock | undefined> => {
  const requests = [{ method: "eth_getBlockByNumber", params: [tag, false] }, ...calls].map((request, id) => ({
    jsonrpc: "2.0",
    id,
    ...request,
  }));
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(requests),
  });
  const [block, ...results] = ((await response.json()) as CallResult[]).sort((a, b) => a.id - b.id);
  const hash = (block?.result as { readonly hash?: Hash } | null | undefined)?.hash;
  return hash === undefined ? undefined : { hash, results };
};
