import { NodeError } from "../core/node.ts";
import type { RequestContext, RpcSource } from "../core/rpcSource.ts";
import { type Hash, isHash } from "../ethereum/hex.ts";
import { asText } from "../json/asText.ts";
import { createCall } from "../jsonrpc/call.ts";
import { isRecord } from "./paramSpec.ts";

const NAME = "eth_getBlockByHash";

/**
 * Creates the function that reads the parent's hash of a block of any branch. It returns undefined if no node has the block.
 * It throws every other error: a node that is slow or limited may have the block.
 */
export const parentHashOf =
  (reads: RpcSource) =>
  async (hash: Hash, context: RequestContext): Promise<Hash | undefined> => {
    const values = [hash, false] as const;
    const call = createCall(NAME, values);
    try {
      const { body } = await reads.request(
        { ...call, retention: "byHash", canonicalParams: JSON.stringify([NAME, values]), blockField: "hash" },
        context,
      );
      const block: unknown = body instanceof Uint8Array ? JSON.parse(asText(body)) : null;
      return isRecord(block) && isHash(block.parentHash) ? block.parentHash : undefined;
    } catch (error) {
      if (error instanceof NodeError && error.kind === "missingData") {
        return undefined;
      }
      throw error;
    }
  };
