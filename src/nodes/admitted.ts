import type { RpcSource } from "../core/rpcSource.ts";
import type { MemoryBudget } from "../limits/memoryBudget.ts";

/** Refuses requests of clients that have no room in the memory budget. Requests of forebay itself always pass. */
export const admitted = (source: RpcSource, budget: MemoryBudget): RpcSource => ({
  request: (request, context) => {
    const { clientId, connection } = context.caller;
    const error = connection === undefined ? undefined : budget.refuse("requests", clientId);
    return error === undefined ? source.request(request, context) : Promise.reject(error);
  },
});
