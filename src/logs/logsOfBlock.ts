import { type Node, NodeError } from "../core/node.ts";
import type { RequestContext, RpcResponse } from "../core/rpcSource.ts";
import { type Hash, isData, isQuantity, parseData } from "../ethereum/hex.ts";
import { canonicalLogFilter, type LogFilter } from "../ethereum/logFilter.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import type { Fetched, FetchLogs } from "./fetchLogs.ts";
import { admitsLogs } from "./logCompleteness.ts";
import { formatList, joinLogs } from "./mergeLogs.ts";
import { type FetchContext, parseNodeLogs } from "./requestLogs.ts";
import { blockKey, hashFilter, type SegmentStore } from "./segments.ts";

export interface LogsOfBlockOptions {
  readonly nodes: readonly Node[];
  readonly store: SegmentStore;
  readonly fetchLogs: FetchLogs;
}

export type LogsOfBlock = (hash: Hash, filter: LogFilter, context: RequestContext) => Promise<RpcResponse>;

interface Header {
  readonly number: bigint;
  readonly logsBloom: Uint8Array;
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null;

const parseHeader = (block: unknown): Header | undefined => {
  if (!isObject(block) || !isQuantity(block.number)) return undefined;
  const logsBloom = isData(block.logsBloom) ? parseData(block.logsBloom) : undefined;
  return logsBloom?.length === 256 ? { number: BigInt(block.number), logsBloom } : undefined;
};

/** Logs of one block by its hash. A block that no node knows is an error; one without logs is held against its bloom. */
export const createLogsOfBlock = ({ nodes, store, fetchLogs }: LogsOfBlockOptions): LogsOfBlock => {
  const findHeader = async (hash: Hash, context: RequestContext): Promise<Header> => {
    let lastError: unknown;
    for (const node of nodes.filter(({ available }) => available)) {
      try {
        const header = parseHeader(await parseNodeLogs(node, "eth_getBlockByHash", [hash, false], context));
        if (header !== undefined) return header;
      } catch (error) {
        if (!(error instanceof NodeError)) throw error;
        if (error.kind !== "missingData") lastError = error;
      }
    }
    // Only nodes that all answered can say that there is no such block.
    throw lastError ?? new RpcError(CODES.SERVER, "unknown block");
  };

  const ask = async (hash: Hash, filter: LogFilter, context: FetchContext): Promise<Fetched> => {
    const { number, logsBloom } = await findHeader(hash, context);
    const job = { from: number, to: number, blockHash: hash, filter, final: false };
    const fetched = await fetchLogs(job, context);
    if (fetched.logs.length > 0 || !admitsLogs(logsBloom, filter)) return fetched;
    // The bloom admits a log: the answer stands when it is given twice.
    return fetchLogs(job, context);
  };

  return async (hash, filter, context) => {
    const filterHash = hashFilter(canonicalLogFilter(filter));
    const key = blockKey(filterHash, hash);
    const [kept] = context.bypassCache ? [] : await store.get([key]);
    if (kept !== undefined) return { body: formatList([kept.bytes]), status: { hit: kept.from } };

    const asker = { clientId: context.clientId, query: {}, signal: context.signal };
    const {
      logs,
      timestamps,
      nodes: asked,
    } = await ask(hash, filter, { ...context, asker, filterHash, take: () => {} });
    const bytes = joinLogs(logs, timestamps);
    const number = logs[0]?.block;
    store.set(key, bytes, "byHash", number === undefined ? undefined : { number: BigInt(number), hash });
    const [node] = asked;
    return {
      body: formatList([bytes]),
      status: { fwd: context.bypassCache ? "request" : "miss", stored: true },
      ...(node !== undefined && { node }),
    };
  };
};
