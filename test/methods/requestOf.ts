import assert from "node:assert/strict";
import type { RpcRequest, RpcResponse } from "../../src/core/rpcSource.ts";
import type { View } from "../../src/core/view.ts";
import { createCall, paramsTextOf } from "../../src/jsonrpc/call.ts";
import type { MethodChain } from "../../src/methods/method.ts";
import { ParsedReads } from "../../src/methods/parsedReads.ts";
import { table } from "../../src/methods/table.ts";
import { LocalFilters } from "../../src/subscriptions/localFilters.ts";
import { PolledFilters } from "../../src/subscriptions/polledFilters.ts";
import { OwnHashes } from "../../src/verification/checkHeader.ts";
import { createMemoryStore } from "../logs/memoryStore.ts";
import { createHeads } from "../support/builders/heads.ts";
import { createContext } from "../support/builders/request.ts";

export const A = `0x${"Aa".repeat(20)}`;

export const a = A.toLowerCase();

export const heads = createHeads({ latest: 100n, finalized: 50n, oldest: 40n });

export const context = createContext({ heads });

const NO_LOGS: MethodChain["logs"] = { request: async () => ({ body: Buffer.from("[]"), status: {} }) };

interface MethodChainParts {
  readonly reads: MethodChain["nodes"];
  readonly logs?: MethodChain["logs"];
  readonly refresh?: MethodChain["heads"]["refresh"];
}

/** Creates the chain of a method call. All requests except those of logs go to `reads`. */
export const createMethodChain = ({
  reads,
  logs = NO_LOGS,
  refresh = async () => heads,
}: MethodChainParts): MethodChain => ({
  chainId: 901n,
  networkId: "901",
  forks: undefined,
  reads,
  nodes: reads,
  forgetState: () => undefined,
  capabilities: () => [],
  parsedReads: new ParsedReads(),
  ownHashes: new OwnHashes(),
  committed: { has: () => false },
  provenBlocks: { find: () => undefined, format: () => assert.fail("no proofs") },
  recordSubmitted: async () => undefined,
  advanceNonce: async (_sender: string, nonce: bigint) => nonce,
  sendsToAll: false,
  subscribe: () => () => {},
  execution: undefined,
  pendingNumber: "same",
  logs,
  filters: new PolledFilters({
    logs: { request: (...query) => logs.request(...query), keep: () => {}, kept: async () => undefined },
    store: createMemoryStore(),
    parentHashOf: async () => undefined,
    blocksBelow: async () => [],
    local: new LocalFilters({ maxPerClient: 9, maxBytesPerClient: 1_000_000 }),
  }),
  subscriptions: {
    subscribe: () => assert.fail("no subscriptions"),
    unsubscribe: () => assert.fail("no subscriptions"),
  },
  logLimits: { maxAddresses: 9, maxTopics: 9, maxBlocks: 9 },
  heads: { blockTimeMs: 2_000, refresh, reach: () => undefined },
});

/** Calls a method of the table. */
export const callMethod = async (
  chain: MethodChain,
  name: string,
  params: readonly unknown[],
  view: View = context.view,
): Promise<RpcResponse> => {
  const method = table.find((entry) => entry.name === name);
  assert.ok(method, name);
  return method.handle({ chain, call: createCall(name, params), context: context.with({ view }) });
};

/** Returns the request that a call becomes, and how often it refreshed heads. */
export const requestOf = async (name: string, params: readonly unknown[], refreshed = heads) => {
  const requests: RpcRequest[] = [];
  let refreshes = 0;
  const reads = {
    request: async (request: RpcRequest) => {
      requests.push(request);
      return { body: Buffer.from("{}"), status: {} };
    },
  };
  const refresh = async () => {
    refreshes++;
    return refreshed;
  };
  await callMethod(createMethodChain({ reads, refresh }), name, params);
  const [request] = requests;
  assert.ok(request);
  return { ...request, text: Buffer.from(paramsTextOf(request)).toString(), refreshes };
};
