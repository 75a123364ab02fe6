import { rejectInvertedRange } from "../core/logRange.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import { parseLogQuery } from "../ethereum/logFilter.ts";
import { createCall } from "../jsonrpc/call.ts";
import { answerLogs } from "./eth_getLogs.ts";
import { forwarded, type Method, type MethodInput } from "./method.ts";
import { formatNodeFilterId, parseNodeFilterId } from "./nodeFilterId.ts";
import { type CanonicalJson, readAny, required } from "./paramSpec.ts";
import { parseParams } from "./parseParams.ts";
import { viewResponse } from "./pendingReads.ts";

const id = required("id", readAny);
const PLAIN_TEXT = /^\s*"([^"\\]+)"\s*$/;
const COMPUTED = { kept: "computed", atPending: "none" } as const;

/** A method that uses a filter: the node answers for a filter that it made. */
const usesFilter = (
  name: string,
  answer: (asked: MethodInput, given: CanonicalJson) => Promise<RpcResponse>,
): Method => ({
  name,
  ...COMPUTED,
  answer: async (asked) => {
    const { chain, call, context } = asked;
    const [given = null] = parseParams(call.params, [id]);
    const filter = parseNodeFilterId(given);
    if (filter === undefined) return answer(asked, given);
    const question = {
      ...createCall(name, [filter.id]),
      retention: "never",
      canonicalParams: "",
      write: true,
    } as const;
    return chain.nodes.request({ ...question, filterOwner: filter.node }, context);
  },
});

/** Filters of logs and blocks live here, in this process or in Redis; those of pending transactions live in a node. */
export const filterMethods: readonly Method[] = [
  {
    name: "eth_newFilter",
    ...COMPUTED,
    answer: async ({ chain, call, context }): Promise<RpcResponse> => {
      const [filter] = parseParams(call.params, [required("filter", readAny)]) as readonly [CanonicalJson];
      const query = parseLogQuery(filter, chain.logLimits);
      if ("fromBlock" in query.blocks) rejectInvertedRange(query.blocks.fromBlock, query.blocks.toBlock);
      return viewResponse(await chain.filters.newLogFilter(query, context));
    },
  },
  {
    name: "eth_newBlockFilter",
    ...COMPUTED,
    answer: async ({ chain, call, context }) => {
      parseParams(call.params, []);
      return viewResponse(await chain.filters.newBlockFilter(context));
    },
  },
  {
    name: "eth_newPendingTransactionFilter",
    kept: "never",
    atPending: "none",
    answer: async (asked) => {
      const answer = await forwarded(asked);
      const { body, node } = answer;
      const made = body instanceof Uint8Array ? PLAIN_TEXT.exec(Buffer.from(body).toString())?.[1] : undefined;
      if (made === undefined || node === undefined) return answer;
      return { ...answer, body: Buffer.from(JSON.stringify(formatNodeFilterId({ node, id: made }))) };
    },
  },
  usesFilter("eth_getFilterChanges", ({ chain, context }, given) => chain.filters.changes(given, context)),
  usesFilter("eth_getFilterLogs", async (asked, given) => answerLogs(asked, await asked.chain.filters.query(given))),
  usesFilter("eth_uninstallFilter", async ({ chain }, given) => viewResponse(await chain.filters.uninstall(given))),
];
