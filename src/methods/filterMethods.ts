import { rejectInvertedRange } from "../core/logRange.ts";
import { readLogQuery } from "../core/paramReaders.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import { createCall } from "../jsonrpc/call.ts";
import { retryOnBranchChange } from "./branchRetry.ts";
import { respondWithLogs } from "./eth_getLogs.ts";
import { forwarded, type Method, type MethodInput } from "./method.ts";
import { type CanonicalJson, parseParams, readAny, required } from "./paramSpec.ts";
import { viewResponse } from "./pendingReads.ts";

/** A filter that a node created and stores. */
interface NodeFilter {
  readonly node: string;
  /** The id that the node returned. */
  readonly id: string;
}

const FORM = /^node\/(?<node>[a-z][a-z0-9-]*)\/(?<id>.+)$/s;
const HEX = /^0x(?:[0-9a-f]{2})+$/i;

/** Returns the id for clients: hex, like every filter id, with the node's name in it. Any replica can read the node from it. */
const formatNodeFilterId = ({ node, id }: NodeFilter): string =>
  `0x${Buffer.from(`node/${node}/${id}`).toString("hex")}`;

/** Returns undefined for an id that `formatNodeFilterId` did not create. */
const parseNodeFilterId = (value: unknown): NodeFilter | undefined => {
  if (typeof value !== "string" || !HEX.test(value)) {
    return undefined;
  }
  const groups = FORM.exec(Buffer.from(value.slice(2), "hex").toString())?.groups;
  return groups?.node === undefined || groups.id === undefined ? undefined : { node: groups.node, id: groups.id };
};

const id = required("id", readAny);
const PLAIN_TEXT = /^\s*"([^"\\]+)"\s*$/;
/** A longer text is the id of no filter. It is not parsed. */
const MAX_ID_BYTES = 4 * 1024;
const COMPUTED = { retention: "computed", atPending: "none" } as const;

/** Creates a method that uses a filter. A filter that a node created is read from that node. */
const usesFilter = (
  name: string,
  handle: (input: MethodInput, filterId: CanonicalJson) => Promise<RpcResponse>,
): Method => ({
  name,
  ...COMPUTED,
  handle: async (input) => {
    const { chain, call, context } = input;
    const isLong = (call.paramsText?.length ?? 0) > MAX_ID_BYTES;
    const [filterId = null] = isLong ? [] : parseParams(call.params, [id]);
    const filter = parseNodeFilterId(filterId);
    if (filter === undefined) {
      return handle(input, filterId);
    }
    const request = {
      ...createCall(name, [filter.id]),
      retention: "never",
      canonicalParams: "",
      write: true,
    } as const;
    return chain.nodes.request({ ...request, onlyNode: filter.node }, context);
  },
});

/** Filters of logs and blocks are in this process or in Redis. Filters of pending transactions are in a node. */
export const filterMethods: readonly Method[] = [
  {
    name: "eth_newFilter",
    ...COMPUTED,
    handle: async ({ chain, call, context }): Promise<RpcResponse> => {
      const [filter] = parseParams(call.params, [required("filter", readAny)]) as readonly [CanonicalJson];
      const query = readLogQuery(filter, chain.logLimits);
      if ("fromBlock" in query.blocks) {
        rejectInvertedRange(query.blocks.fromBlock, query.blocks.toBlock);
      }
      return viewResponse(await chain.filters.newLogFilter(query, context));
    },
  },
  {
    name: "eth_newBlockFilter",
    ...COMPUTED,
    handle: async ({ chain, call, context }) => {
      parseParams(call.params, []);
      return viewResponse(await chain.filters.newBlockFilter(context));
    },
  },
  {
    name: "eth_newPendingTransactionFilter",
    retention: "never",
    atPending: "none",
    handle: async (input) => {
      const response = await forwarded(input);
      const { body, node } = response;
      const made = body instanceof Uint8Array ? PLAIN_TEXT.exec(Buffer.from(body).toString())?.[1] : undefined;
      if (made === undefined || node === undefined) {
        return response;
      }
      return { ...response, body: Buffer.from(JSON.stringify(formatNodeFilterId({ node, id: made }))) };
    },
  },
  // A failed poll has reported nothing, so that it can be repeated in another view.
  usesFilter("eth_getFilterChanges", async ({ chain, context }, filterId) =>
    retryOnBranchChange(chain, context, (at) => chain.filters.changes(filterId, at)),
  ),
  usesFilter("eth_getFilterLogs", async (input, filterId) =>
    respondWithLogs(input, await input.chain.filters.query(filterId)),
  ),
  usesFilter("eth_uninstallFilter", async ({ chain }, filterId) =>
    viewResponse(await chain.filters.uninstall(filterId)),
  ),
];
