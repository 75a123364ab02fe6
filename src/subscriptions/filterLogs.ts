import type { RpcResponse } from "../core/rpcSource.ts";
import { formatList, joinLogs } from "../logs/mergeLogs.ts";
import { scanLogs } from "../logs/scanLogs.ts";
import type { FilterChain } from "./filterChain.ts";
import type { FilterAdvance } from "./filterStore.ts";

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

/** Groups logs by block. Leaves out blocks that a reorganisation cannot remove. */
export const removableLogs = (logs: Uint8Array, chain: FilterChain, finalized: bigint): FilterAdvance["logs"] =>
  [...Map.groupBy(scanLogs(logs), ({ hash }) => hash)].flatMap(([hash, group]) => {
    const number = BigInt(group[0]?.block ?? 0);
    const block = chain.at(number);
    if (block?.hash !== hash || number <= finalized) {
      return [];
    }
    return [{ block: { number, hash: block.hash }, logs: joinLogs(group) }];
  });
