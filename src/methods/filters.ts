import { parseLogQuery } from "../chain/logFilter.ts";
import { refuseInverted } from "../chain/logRange.ts";
import type { Answer } from "../chain/source.ts";
import type { Method } from "./chain.ts";
import { answerLogs } from "./eth_getLogs.ts";
import { fromView } from "./pendingReads.ts";
import { type Canonical, readAny, required } from "./reader.ts";
import { readParams } from "./readParams.ts";

const id = required("id", readAny);
const IN_THIS_PROCESS = { kept: "computed", atPending: "none" } as const;

/** Filters live in this process; their ids tell which replica made them. Issue and behaviour of each: the room logs. */
export const filterMethods: readonly Method[] = [
  {
    name: "eth_newFilter",
    ...IN_THIS_PROCESS,
    answer: async ({ chain, call, context }): Promise<Answer> => {
      const [filter] = readParams(call.params, [required("filter", readAny)]) as readonly [Canonical];
      const query = parseLogQuery(filter, chain.logLimits);
      if ("fromBlock" in query.blocks) refuseInverted(query.blocks.fromBlock, query.blocks.toBlock);
      return fromView(chain.filters.newLogFilter(query, context.view.heads));
    },
  },
  {
    name: "eth_newBlockFilter",
    ...IN_THIS_PROCESS,
    answer: async ({ chain, call, context }) => {
      readParams(call.params, []);
      return fromView(chain.filters.newBlockFilter(context.view.heads));
    },
  },
  {
    name: "eth_getFilterChanges",
    ...IN_THIS_PROCESS,
    answer: async ({ chain, call, context }) => chain.filters.changes(readParams(call.params, [id])[0], context),
  },
  {
    name: "eth_getFilterLogs",
    ...IN_THIS_PROCESS,
    answer: async (asked) => {
      const [given] = readParams(asked.call.params, [id]);
      return answerLogs(asked, asked.chain.filters.query(given));
    },
  },
  {
    name: "eth_uninstallFilter",
    ...IN_THIS_PROCESS,
    answer: async ({ chain, call }) => fromView(chain.filters.uninstall(readParams(call.params, [id])[0])),
  },
];
