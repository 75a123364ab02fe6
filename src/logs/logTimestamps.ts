import { LRUCache } from "lru-cache";
import type { Context } from "../core/context.ts";
import type { Heads } from "../core/heads.ts";
import type { Node } from "../core/node.ts";
import { formatQuantity, isQuantity } from "../ethereum/hex.ts";
import { isFields } from "../json/fields.ts";
import { invalidAnswer, requestJson } from "./requestLogs.ts";
import type { ScannedLog } from "./scanLogs.ts";

const CACHED_BLOCKS = 65_536;
/** Blocks of one segment: requests that are sent together go out as one batch. */
const BATCH_BLOCKS = 128;

/** Timestamps (quantities) by block hash, of blocks with a log that has no timestamp. */
export type Timestamps = ReadonlyMap<string, string>;

/** Finds `blockTimestamp` for logs of nodes that leave it out (docs/service.md, Log object). */
export class LogTimestamps {
  /** By block hash. Created with the first timestamp: the empty cache takes 1.5 MB. */
  #cached: LRUCache<string, string> | undefined;

  /** Reads the block ring first, then the blocks. Throws if the node does not have a block. */
  async fill(logs: readonly ScannedLog[], node: Node, context: Context): Promise<Timestamps> {
    const timestamps = new Map<string, string>();
    const missing = new Set<string>();
    for (const log of logs) {
      if (log.hasTimestamp || timestamps.has(log.hash)) {
        continue;
      }
      const timestamp = readRing(context.view.heads, log) ?? this.#cached?.get(log.hash);
      if (timestamp === undefined) {
        missing.add(log.hash);
      } else {
        timestamps.set(log.hash, timestamp);
      }
    }
    const hashes = [...missing];
    for (let at = 0; at < hashes.length; at += BATCH_BLOCKS) {
      await Promise.all(
        hashes.slice(at, at + BATCH_BLOCKS).map(async (hash) => {
          timestamps.set(hash, await this.#read(hash, node, context));
        }),
      );
    }
    return timestamps;
  }

  async #read(hash: string, node: Node, context: Context): Promise<string> {
    const block = await requestJson(node, "eth_getBlockByHash", [hash, false], context);
    if (!isFields(block) || !isQuantity(block.timestamp)) {
      throw invalidAnswer(node, "The node has no block for a log that it returned");
    }
    this.#cached ??= new LRUCache({ max: CACHED_BLOCKS });
    this.#cached.set(hash, block.timestamp);
    return block.timestamp;
  }
}

const readRing = (heads: Heads, { block, hash }: ScannedLog): string | undefined => {
  const canonical = heads.at(BigInt(block));
  return canonical?.hash === hash ? formatQuantity(canonical.timestamp) : undefined;
};
