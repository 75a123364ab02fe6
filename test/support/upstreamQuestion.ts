import type { Heads, RingBlock } from "../../src/core/heads.ts";
import type { RequestContext, RpcRequest } from "../../src/core/rpcSource.ts";
import { ZERO_HASH } from "../../src/ethereum/hex.ts";
import { createCall } from "../../src/jsonrpc/call.ts";
import { createTelemetry, type Telemetry } from "../../src/telemetry/telemetry.ts";

/** A read of the table; `more` says what else the method's entry would. */
export const createQuestion = (
  method: string,
  params: readonly unknown[] = [],
  more: Partial<RpcRequest> = {},
): RpcRequest => ({
  ...createCall(method, params),
  retention: "recent",
  canonicalParams: JSON.stringify([method, params]),
  ...more,
});

/** Above every node's head: none of them is on another branch. */
const latest: RingBlock = {
  number: 2n ** 63n,
  hash: ZERO_HASH,
  parentHash: ZERO_HASH,
  timestamp: 0n,
  logsBloom: new Uint8Array(256),
};

const heads: Heads = {
  latest,
  safe: undefined,
  finalized: undefined,
  oldest: 0n,
  at: () => undefined,
  header: () => undefined,
};

/** A caller with ten seconds; for rooms that do not look at the view. */
export const createContext = (more: Partial<RequestContext> = {}): RequestContext => ({
  view: { heads },
  signal: new AbortController().signal,
  deadlineMs: performance.now() + 10_000,
  clientId: "test",
  bypassCache: false,
  ...more,
});

export const silent = (): Telemetry => createTelemetry({ level: "silent" });
