import type { BlockId, Heads, RingBlock } from "../../src/core/heads.ts";
import type { RequestContext, RpcRequest, RpcResponse, RpcSource } from "../../src/core/rpcSource.ts";
import type { Hash } from "../../src/ethereum/hex.ts";
import { createCall } from "../../src/jsonrpc/call.ts";

/** A recognisable hash: the number, then the fork. */
export const hashOf = (number: number | bigint, fork = 0): Hash =>
  `0x${number.toString(16).padStart(32, "0")}${fork.toString(16).padStart(32, "0")}`;

export const blockOf = (number: number | bigint, fork = 0): RingBlock => ({
  number: BigInt(number),
  hash: hashOf(number, fork),
  parentHash: hashOf(BigInt(number) - 1n),
  timestamp: BigInt(number) * 2n,
  logsBloom: new Uint8Array(256),
});

export interface HeadsShape {
  readonly latest: number;
  readonly finalized?: number;
  readonly oldest?: number;
  /** Fork of all blocks from `since` on. */
  readonly fork?: { readonly id: number; readonly since: number };
}

export const headsOf = ({ latest, finalized, oldest = 0, fork }: HeadsShape): Heads => {
  const at = (number: bigint): RingBlock | undefined => {
    if (number < BigInt(oldest) || number > BigInt(latest)) return undefined;
    return blockOf(number, fork !== undefined && number >= BigInt(fork.since) ? fork.id : 0);
  };
  const id = (number: number | undefined): BlockId | undefined =>
    number === undefined ? undefined : { number: BigInt(number), hash: hashOf(number) };
  return {
    latest: at(BigInt(latest)) ?? blockOf(latest),
    safe: id(finalized),
    finalized: id(finalized),
    at,
    header: () => undefined,
    oldest: BigInt(oldest),
  };
};

export const contextOf = (heads: Heads, bypassCache = false): RequestContext => ({
  view: { heads },
  signal: new AbortController().signal,
  deadlineMs: performance.now() + 30_000,
  clientId: "test",
  bypassCache,
});

export const questionOf = (fields: Partial<RpcRequest> & Pick<RpcRequest, "retention">): RpcRequest => {
  const call = createCall(fields.method ?? "eth_getBalance", fields.params ?? []);
  return { ...call, canonicalParams: JSON.stringify([call.method, ...call.params]), ...fields };
};

const encoder = new TextEncoder();

export const answerOf = (text: string, fields: Partial<RpcResponse> = {}): RpcResponse => ({
  body: encoder.encode(text),
  status: {},
  node: "node1",
  ...fields,
});

/** A source that answers what it is given and counts. */
export const countingSource = (answer: (question: RpcRequest) => RpcResponse | Promise<RpcResponse>) => {
  const counted = {
    requests: 0,
    request: async (question: RpcRequest): Promise<RpcResponse> => {
      counted.requests += 1;
      return answer(question);
    },
  };
  return counted satisfies RpcSource;
};
