import type { Clock } from "../core/clock.ts";
import type { BlockId, RingBlock } from "../core/heads.ts";
import { NodeError } from "../core/node.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import { formatQuantity } from "../ethereum/hex.ts";
import { createCall } from "../jsonrpc/call.ts";
import { headScope, readBlock, readLinked, readSealedBlock, type SealedBlock } from "../nodes/blockReads.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";
import { sealedBlocksOf } from "./announcedBlocks.ts";
import type { BlockRing } from "./blockRing.ts";
import { classify } from "./canonicalChain.ts";
import { IDENTITY_CALLS, type NodeIdentity, parseIdentity } from "./chainIdentity.ts";
import { type ChainPath, findChainPath } from "./chainPath.ts";
import type { HeadReporter } from "./headReporter.ts";

export interface HeadLeaderOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** The nodes whose heads are followed. */
  readonly nodes: () => readonly UpstreamNode[];
}

/** Every node has the block at this depth below its newest block, even if it prunes. */
const LINKED_BLOCKS = 64n;

/** Whether the node has this block; undefined if it does not answer. */
export const hasBlock = async (
  node: UpstreamNode,
  { number, hash }: BlockId,
  signal: AbortSignal,
): Promise<boolean | undefined> =>
  readBlock(node, number, signal).then(
    (block) => block?.block.hash === hash,
    () => undefined,
  );

/** Whether the node's newest block is in the ring. */
export const isLinked = ({ health: { head, headHash } }: UpstreamNode, ring: BlockRing): boolean =>
  head !== undefined && ring.at(head)?.hash === headHash;

/** The node whose head is served, and whether it still has it. */
export class HeadLeader {
  readonly #options: HeadLeaderOptions;
  /** The origin whose nodes may replace the head of any node. */
  decider: string | undefined;
  #node: UpstreamNode | undefined;
  /** Time since which the leader does not have the served head. */
  #lostSinceMs: number | undefined;

  constructor(options: HeadLeaderOptions) {
    this.#options = options;
  }

  /** Undefined if no head is served, or its node is suspended. */
  get node(): UpstreamNode | undefined {
    return this.#node?.identity.isIdentified ? this.#node : undefined;
  }

  /** Makes the node the leader: its head is served, or it has the served head. */
  set(node: UpstreamNode): void {
    this.#node = node;
    this.#lostSinceMs = undefined;
  }

  /** Whether the node may replace the served head by a lower or conflicting one: the leader, or any node without a usable leader. */
  mayReplaceHead(node: UpstreamNode): boolean {
    return this.#node === node || !this.node?.available || this.decider === node.origin;
  }

  /** Returns the available nodes except `node`. */
  others(node = this.#node): readonly UpstreamNode[] {
    return this.#options.nodes().filter((other) => other !== node && other.available);
  }

  /**
   * Whether the leader has not had this block for `forMs`, and no other node has it.
   * Another node that has the block becomes the leader.
   */
  async isLost(block: BlockId, forMs: number): Promise<boolean> {
    const { clock, signal } = this.#options;
    const { node } = this;
    if (node?.available && (await hasBlock(node, block, signal)) === true) {
      this.#lostSinceMs = undefined;
      return false;
    }
    this.#lostSinceMs ??= clock.nowMs();
    if (clock.nowMs() - this.#lostSinceMs < forMs) {
      return false;
    }
    const others = this.others();
    const results = await Promise.all(others.map((other) => hasBlock(other, block, signal)));
    const nodeWithBlock = others[results.indexOf(true)];
    if (nodeWithBlock) {
      this.set(nodeWithBlock);
    }
    return nodeWithBlock === undefined;
  }

  /**
   * Whether the leader does not have the ancestor LINKED_BLOCKS below its head `latest`, so that the head is not real.
   * False if that ancestor is not above another node's head `other`.
   */
  async lacksAncestor(latest: BlockId, other: BlockId): Promise<boolean> {
    const { node } = this;
    const below = latest.number - LINKED_BLOCKS;
    if (!node?.available || below <= other.number) {
      return false;
    }
    return readBlock(node, below, this.#options.signal).then(
      (block) => block === undefined,
      () => false,
    );
  }
}

/** A provisional head can be withdrawn for this time. With other nodes, it stays provisional until one of them confirms it. */
const PROVISIONAL_MS = 60_000;
/** A provisional head is withdrawn if its node does not have it for this time. */
const PROVISIONAL_LOST_MS = 2_000;

export interface ProvisionalHeadOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly leader: HeadLeader;
  readonly reporter: Pick<HeadReporter, "onWithdrawn">;
}

/** The served head while it is provisional: it does not link to the ring that was served before. */
export class ProvisionalHead {
  readonly #options: ProvisionalHeadOptions;
  /** `ring`: the chain that was served before. `undefined` if there was none. */
  #previous: { readonly ring: BlockRing | undefined; readonly sinceMs: number } | undefined;

  constructor(options: ProvisionalHeadOptions) {
    this.#options = options;
  }

  /** Whether the provisional head is the first that was served. */
  get isFirst(): boolean {
    return this.#previous !== undefined && this.#previous.ring === undefined;
  }

  /** Makes the served head provisional. `ring`: the chain that was served before, if there was one. */
  begin(ring: BlockRing | undefined): void {
    this.#previous = { ring, sinceMs: this.#options.clock.nowMs() };
  }

  end(): void {
    this.#previous = undefined;
  }

  /** Another node has this block of the served chain. If the block is above the chain before, the head is confirmed. */
  confirm({ number }: RingBlock): void {
    if (this.#previous && number > (this.#previous.ring?.latest.number ?? -1n)) {
      this.end();
    }
  }

  /** Returns the path to the chain before, if the provisional head's node does not have that head any more; else `unchanged`. */
  async restorePrevious(
    node: UpstreamNode,
    head: SealedBlock,
    { latest }: BlockRing,
  ): Promise<ChainPath | "unchanged"> {
    const { clock, leader, reporter } = this.#options;
    const previous = this.#previous;
    if (!previous) {
      return "unchanged";
    }
    if (clock.nowMs() - previous.sinceMs > PROVISIONAL_MS && leader.others().length === 0) {
      this.end();
      return "unchanged";
    }
    const isWrong =
      (node !== leader.node && (await leader.lacksAncestor(latest, head.block))) ||
      (await leader.isLost(latest, PROVISIONAL_LOST_MS));
    if (!isWrong) {
      return "unchanged";
    }
    const path = previous.ring ? await this.#pathOnto(node, head, previous.ring) : { blocks: [head], joined: false };
    if (!path || (previous.ring && !path.joined)) {
      return "unchanged";
    }
    reporter.onWithdrawn(latest);
    return path;
  }

  async #pathOnto(node: UpstreamNode, head: SealedBlock, onto: BlockRing): Promise<ChainPath | undefined> {
    const { signal } = this.#options;
    if (classify(onto, head) === "inRing") {
      return { blocks: sealedBlocksOf(onto, onto.latest.number), joined: true, onto };
    }
    const path = await findChainPath(onto, head, (range, hash) => readLinked(node, range, hash, signal));
    return path && { ...path, onto };
  }
}

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
  const outcomes = await node.probe([...IDENTITY_CALLS, ...calls], headScope(signal));
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
