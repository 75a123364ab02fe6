import { NodeError } from "../core/node.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import { formatQuantity } from "../ethereum/hex.ts";
import { createCall } from "../jsonrpc/call.ts";
import { readSealedBlock, type SealedBlock } from "../nodes/sealedBlock.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";
import type { BlockRing } from "./blockRing.ts";
import { IDENTITY_CALLS, identityReach, type NodeIdentity, parseIdentity } from "./nodeIdentity.ts";

/** A node's identity, and its blocks around a head that does not link to the ring. */
export interface HeadEvidence {
  readonly identity: NodeIdentity;
  /** The node returns the head when it is read by number. */
  readonly hasHead: boolean;
  /** The node has one of the ring's blocks with the ring's hash. */
  readonly hasRingBlock: boolean;
  /** The node has a block halfway between ring and head. A node that is ahead has one. The node of an invented head does not. */
  readonly hasBlockBetween: boolean;
}

const parseBlock = (outcome: RpcResponse | NodeError | undefined): SealedBlock | undefined =>
  outcome === undefined || outcome instanceof NodeError || !(outcome.body instanceof Uint8Array)
    ? undefined
    : readSealedBlock(outcome.body);

/** Reads the evidence in one batch, so that one machine behind a load balancer answers all of it. */
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
  const [top, between, ...ringBlocks] = outcomes.slice(IDENTITY_CALLS.length).map(parseBlock);
  return {
    identity: parseIdentity(outcomes),
    hasHead: top?.block.hash === head.block.hash,
    hasRingBlock: ringBlocks.some(
      (block) => block !== undefined && ring.at(block.block.number)?.hash === block.block.hash,
    ),
    hasBlockBetween: between?.block.number === middle,
  };
};
