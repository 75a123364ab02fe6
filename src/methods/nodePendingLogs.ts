import type { Heads } from "../core/heads.ts";
import { NodeError } from "../core/node.ts";
import { isQuantity } from "../ethereum/hex.ts";
import { canonicalLogFilter, type LogFilter, matchesLog } from "../ethereum/logFilter.ts";
import { createCall } from "../jsonrpc/call.ts";
import type { MethodInput } from "./method.ts";
import { isRecord } from "./paramSpec.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

const isAbove = (log: unknown, heads: Heads): log is { readonly address: string; readonly topics: readonly string[] } =>
  isRecord(log) &&
  typeof log.address === "string" &&
  Array.isArray(log.topics) &&
  isQuantity(log.blockNumber) &&
  BigInt(log.blockNumber) > heads.latest.number;

/** Reads the node's pending logs above the view's head. Returns none if the node rejects `pending`, as geth does. */
export const nodePendingLogs = async (
  { chain, context }: MethodInput,
  filter: LogFilter,
  heads: Heads,
): Promise<readonly Uint8Array[]> => {
  const call = createCall("eth_getLogs", [{ fromBlock: "pending", toBlock: "pending" }]);
  const request = { ...call, retention: "never", canonicalParams: canonicalLogFilter(filter) } as const;
  const response = await Promise.try(() => chain.reads.request(request, context)).catch((error: unknown) => {
    if (error instanceof NodeError) {
      return undefined;
    }
    throw error;
  });
  if (!(response?.body instanceof Uint8Array)) {
    return [];
  }
  const logs: unknown = JSON.parse(decoder.decode(response.body));
  if (!Array.isArray(logs)) {
    return [];
  }
  return logs
    .filter((log) => isAbove(log, heads) && matchesLog(filter, log))
    .map((log) => encoder.encode(JSON.stringify(log)));
};
