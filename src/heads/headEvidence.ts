import { NodeError } from "../core/node.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import { formatQuantity } from "../ethereum/hex.ts";
import { createCall } from "../jsonrpc/call.ts";
import { readSealedBlock, type SealedBlock } from "../nodes/sealedBlock.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";
import type { BlockRing } from "./blockRing.ts";
import { IDENTITY_CALLS, identityReach, type NodeIdentity, parseIdentity } from "./nodeIdentity.ts";

/** What a node says of itself and of a head that does not link to the ring. */
export interface HeadEvidence {
  readonly identity: NodeIdentity;
  /** By its number it has the head too. */
  readonly hasHead: boolean;
  /** It has one of the ring's blocks with the ring's hash. */
  readonly hasRingBlock: boolean;
  /** It has a block halfway between the ring and the head: a node that is ahead has, an invented head's node has not. */
  readonly hasMiddle: boolean;
}

const parseBlock = (outcome: RpcResponse | NodeError | undefined): SealedBlock | undefined =>
  outcome === undefined || outcome instanceof NodeError || !(outcome.body instanceof Uint8Array)
    ? undefined
    : readSealedBlock(outcome.body);

/** Reads all of it in one batch: of a load balancer's machines, which may be of several chains, one answers the batch. */
export const readHeadEvidence = async (
  node: UpstreamNode,
  ring: BlockRing,
  head: SealedBlock,
  signal: AbortSignal,
): Promise<HeadEvidence> => {
  const { number } = head.block;
  const { latest, oldest } = ring;
  const middle = (latest.number + number) / 2n;
  const samples = [latest.number, (latest.number + oldest) / 2n, oldest];
  const calls = [number, middle, ...samples].map((block) =>
    createCall("eth_getBlockByNumber", [formatQuantity(block), false]),
  );
  const outcomes = await node.probe([...IDENTITY_CALLS, ...calls], identityReach(signal));
  const [top, between, ...held] = outcomes.slice(IDENTITY_CALLS.length).map(parseBlock);
  return {
    identity: parseIdentity(outcomes),
    hasHead: top?.block.hash === head.block.hash,
    hasRingBlock: held.some((block) => block !== undefined && ring.at(block.block.number)?.hash === block.block.hash),
    hasMiddle: between?.block.number === middle,
  };
};
