import type { Clock } from "../core/clock.ts";
import type { BlockId } from "../core/heads.ts";
import { readBlock } from "../nodes/blockReads.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";
import type { BlockRing } from "./blockRing.ts";

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
export const isLinked = ({ head, headHash }: UpstreamNode, ring: BlockRing): boolean =>
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
    return this.#node?.identified ? this.#node : undefined;
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
