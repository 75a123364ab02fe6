import type { CallScope } from "../core/context.ts";
import { NodeError } from "../core/node.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import { type Hash, isHash, isQuantity, ZERO_HASH } from "../ethereum/hex.ts";
import { asText } from "../json/jsonBytes.ts";
import { type Call, createCall } from "../jsonrpc/call.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";

export interface NodeIdentity {
  readonly chainId: bigint;
  /** Zero if the node does not have its genesis block. */
  readonly genesis: Hash;
}

/** A node serves another chain than the other nodes, or than the configured one. */
export class ChainMismatchError extends Error {
  override readonly name = "ChainMismatchError";
}

/** A node returned its chain id, but its genesis block cannot be read. */
export class GenesisMissingError extends Error {
  override readonly name = "GenesisMissingError";
}

const TIMEOUT_MS = 5_000;

export const identityScope = (signal: AbortSignal): CallScope => ({
  signal,
  deadlineMs: performance.now() + TIMEOUT_MS,
});

/** The calls whose outcomes `parseIdentity` takes, in this order. */
export const IDENTITY_CALLS: readonly Call[] = [
  createCall("eth_chainId", []),
  createCall("eth_getBlockByNumber", ["0x0", false]),
];

const parse = (outcome: RpcResponse | NodeError | undefined): unknown =>
  outcome === undefined || outcome instanceof NodeError || !(outcome.body instanceof Uint8Array)
    ? undefined
    : JSON.parse(asText(outcome.body));

/** Parses the outcomes of IDENTITY_CALLS. Throws if there is no chain id, or if the genesis block is an error. */
export const parseIdentity = ([id, block]: readonly (RpcResponse | NodeError)[]): NodeIdentity => {
  if (id instanceof NodeError) {
    throw id;
  }
  if (block instanceof NodeError) {
    throw new GenesisMissingError(`genesis block cannot be read: ${block.message}`, { cause: block });
  }
  const chainId = parse(id);
  if (!isQuantity(chainId)) {
    throw new Error("eth_chainId returned no quantity");
  }
  const { hash }: { hash?: unknown } = Object(parse(block));
  return { chainId: BigInt(chainId), genesis: isHash(hash) ? hash : ZERO_HASH };
};

/** Reads chain id and genesis in one batch, so that one machine behind a load balancer answers both. */
export const readNodeIdentity = async (node: UpstreamNode, signal: AbortSignal): Promise<NodeIdentity> =>
  parseIdentity(await node.probe(IDENTITY_CALLS, identityScope(signal)));
