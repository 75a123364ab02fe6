import { LRUCache } from "lru-cache";
import type { Heads } from "../core/heads.ts";
import type { Node } from "../core/node.ts";
import type { RequestContext } from "../core/rpcSource.ts";
import { formatQuantity, isQuantity } from "../ethereum/hex.ts";
import { invalidAnswer, parseNodeLogs } from "./requestLogs.ts";
import type { ScannedLog } from "./scanLogs.ts";

const REMEMBERED_BLOCKS = 65_536;
/** Blocks of one segment: what is asked at once goes out as one batch. */
const BATCH_BLOCKS = 128;

/** Timestamps by block hash, of those blocks that gave a log without one. */
export type Timestamps = ReadonlyMap<string, string>;

export type FillTimestamps = (logs: readonly ScannedLog[], node: Node, context: RequestContext) => Promise<Timestamps>;

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null;

/** `blockTimestamp` (section 2.2 of the contract) for logs of nodes that leave it out: from the ring, else from the block. */
export const createFillTimestamps = (): FillTimestamps => {
  const known = new LRUCache<string, string>({ max: REMEMBERED_BLOCKS });

  const read = async (hash: string, node: Node, context: RequestContext): Promise<string> => {
    const block = await parseNodeLogs(node, "eth_getBlockByHash", [hash, false], context);
    if (!isObject(block) || !isQuantity(block.timestamp)) {
      throw invalidAnswer(node, "A node does not know the block of a log that it gave");
    }
    known.set(hash, block.timestamp);
    return block.timestamp;
  };

  const inRing = (heads: Heads, { block, hash }: ScannedLog): string | undefined => {
    const found = heads.at(BigInt(block));
    return found?.hash === hash ? formatQuantity(found.timestamp) : undefined;
  };

  return async (logs, node, context) => {
    const timestamps = new Map<string, string>();
    const missing = new Set<string>();
    for (const log of logs) {
      if (log.timed || timestamps.has(log.hash)) continue;
      const timestamp = inRing(context.view.heads, log) ?? known.get(log.hash);
      if (timestamp === undefined) missing.add(log.hash);
      else timestamps.set(log.hash, timestamp);
    }
    const hashes = [...missing];
    for (let at = 0; at < hashes.length; at += BATCH_BLOCKS) {
      await Promise.all(
        hashes.slice(at, at + BATCH_BLOCKS).map(async (hash) => {
          timestamps.set(hash, await read(hash, node, context));
        }),
      );
    }
    return timestamps;
  };
};
