import assert from "node:assert/strict";
import type { RpcRequest } from "../../src/core/rpcSource.ts";
import { createCall, paramsTextOf } from "../../src/jsonrpc/call.ts";
import { table } from "../../src/methods/table.ts";
import { createLocalFilters } from "../../src/subscriptions/localFilters.ts";
import { createFilters } from "../../src/subscriptions/polledFilters.ts";
import { createHeads } from "../support/builders/heads.ts";
import { createContext } from "../support/builders/request.ts";

export const A = `0x${"Aa".repeat(20)}`;

export const a = A.toLowerCase();

export const heads = createHeads({ latest: 100n, finalized: 50n, oldest: 40n });

export const context = createContext({ heads });

/** Returns the request that a call becomes, and how often it refreshed heads. */
export const requestOf = async (name: string, params: readonly unknown[], refreshed = heads) => {
  const method = table.find((entry) => entry.name === name);
  assert.ok(method, name);
  const requests: RpcRequest[] = [];
  let refreshes = 0;
  const source = {
    request: async (request: RpcRequest) => {
      requests.push(request);
      return { body: Buffer.from("{}"), status: {} };
    },
  };
  const chain = {
    chainId: 901n,
    reads: source,
    nodes: source,
    recordSubmitted: () => {},
    advanceNonce: async (_sender: string, nonce: bigint) => nonce,
    askNodeNonce: false,
    subscribe: () => () => {},
    execution: undefined,
    pendingNumber: "same" as const,
    logs: { request: async () => ({ body: Buffer.from("[]"), status: {} }) },
    filters: createFilters({
      logs: { request: async () => ({ body: Buffer.from("[]"), status: {} }) },
      local: createLocalFilters({ maxPerClient: 9 }),
    }),
    logLimits: { maxAddresses: 9, maxTopics: 9, maxBlocks: 9 },
    heads: {
      blockTimeMs: 2_000,
      refresh: async () => {
        refreshes++;
        return refreshed;
      },
    },
  };
  await method.handle({ chain, call: createCall(name, params), context });
  const [request] = requests;
  assert.ok(request);
  return { ...request, text: Buffer.from(paramsTextOf(request)).toString(), refreshes };
};
