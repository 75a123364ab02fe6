import type { BlockId } from "../core/heads.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import { formatList, joinLogs } from "../logs/mergeLogs.ts";
import { scanLogs } from "../logs/scanLogs.ts";
import type { ReportedBlock } from "./filterStore.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Reads the logs of a response to its end, in the form of `joinLogs`. */
export const readFilterLogs = async ({ body }: RpcResponse): Promise<Uint8Array> => {
  const chunks: Uint8Array[] = [];
  if (body instanceof Uint8Array) {
    chunks.push(body);
  } else {
    for await (const chunk of body) {
      chunks.push(chunk);
    }
  }
  return joinLogs(scanLogs(Buffer.concat(chunks)));
};

/** Adds `removed: true` to each log. Takes and returns the form of `joinLogs`. */
export const markRemoved = (logs: Uint8Array): Uint8Array => {
  const parsed: readonly object[] = JSON.parse(decoder.decode(formatList([logs])));
  return encoder.encode(parsed.map((log) => `,${JSON.stringify({ ...log, removed: true })}`).join(""));
};

/** Returns the blocks with their logs. Leaves out logs that a reorganisation cannot remove. */
export const withRemovableLogs = (blocks: readonly BlockId[], logs: Uint8Array, finalized: bigint): ReportedBlock[] => {
  const byHash = Map.groupBy(scanLogs(logs), ({ hash }) => hash);
  return blocks.map((block) => {
    const ofBlock = block.number > finalized ? byHash.get(block.hash) : undefined;
    return { ...block, logs: ofBlock && joinLogs(ofBlock) };
  });
};
