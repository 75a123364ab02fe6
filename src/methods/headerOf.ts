import { NodeError } from "../core/node.ts";
import type { RequestContext, RpcSource } from "../core/rpcSource.ts";
import type { Hash } from "../ethereum/hex.ts";
import { asText } from "../json/asText.ts";
import { isFields } from "../json/fields.ts";
import { createCall } from "../jsonrpc/call.ts";

const NAME = "eth_getBlockByHash";

/** The JSON fields of a block with the hashes of its transactions. */
export type BlockFields = Readonly<Record<string, unknown>>;

/**
 * Creates the function that reads a block of any branch through the cache. It returns undefined if no node has the block.
 * It throws every other error: a node that is slow or limited may have the block.
 */
export const headerOf =
  (reads: RpcSource) =>
  async (hash: Hash, context: RequestContext): Promise<BlockFields | undefined> => {
    const values = [hash, false] as const;
    const call = createCall(NAME, values);
    try {
      const { body } = await reads.request(
        { ...call, retention: "byHash", canonicalParams: JSON.stringify([NAME, values]), blockField: "hash" },
        context,
      );
      const block: unknown = body instanceof Uint8Array ? JSON.parse(asText(body)) : null;
      return isFields(block) ? block : undefined;
    } catch (error) {
      if (error instanceof NodeError && error.kind === "missingData") {
        return undefined;
      }
      throw error;
    }
  };
