import type { Hash } from "../ethereum/hex.ts";
import type { SealedBlock } from "../nodes/blockReads.ts";
import { readLinked } from "../nodes/blockReads.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";
import { AnnouncedBlocks, type FindBlock, linkHead, type NodeChain, rejoin } from "./announcedBlocks.ts";
import type { BlockRing } from "./blockRing.ts";
import { findChainPath, MAX_GAP_BLOCKS } from "./chainPath.ts";
import type { FollowedOrigins } from "./followedOrigins.ts";
import type { DetachedHeadsOptions } from "./unlinkedHeads.ts";

/** Links the heads of all nodes to the ring, and records each node's blocks above it. */
export class ChainRecorder {
  readonly #options: DetachedHeadsOptions;
  readonly #origins: FollowedOrigins;
  readonly #announced = new AnnouncedBlocks();

  constructor(options: DetachedHeadsOptions, origins: FollowedOrigins) {
    this.#options = options;
    this.#origins = origins;
  }

  /** Returns when a block was first announced. Undefined if it is not above the ring. */
  seenMs(hash: Hash): number | undefined {
    return this.#announced.seenMs(hash);
  }

  /** Links a node's head to the ring: by announced blocks, or by blocks that are read from the node. Returns false if it does not link. */
  async record(node: UpstreamNode, head: SealedBlock): Promise<boolean> {
    const { canonical, selection } = this.#options;
    const { ring } = canonical;
    if (ring === undefined) {
      return false;
    }
    const { number, hash } = head.block;
    if (this.#origins.isOlderHead(node, head.block, ring)) {
      return true;
    }
    if (ring.at(number)?.hash === hash) {
      this.#recordChain(node, { base: { number, hash }, blocks: [] });
      return true;
    }
    if (number <= ring.oldest) {
      this.#origins.recordDetached(node, head.block);
      await selection.verifyDisagreeing(node);
      return true;
    }
    const isFar = number - ring.latest.number > MAX_GAP_BLOCKS;
    const chain = isFar
      ? undefined
      : (linkHead(head, ring, this.#finder(node)) ?? (await this.#readChain(node, head, ring)));
    if (chain === undefined) {
      if (canonical.ring !== ring) {
        return this.record(node, head);
      }
      this.#origins.recordDetached(node, head.block);
      await selection.verifyDisagreeing(node);
      return false;
    }
    // The ring may have changed while a slow node was read.
    const joined = canonical.ring === ring ? chain : rejoin(chain, ring, canonical.ring ?? ring);
    if (joined === undefined) {
      return this.record(node, head);
    }
    this.#recordChain(node, joined);
    return true;
  }

  #recordChain(node: UpstreamNode, chain: NodeChain): void {
    const wasWrong = this.#announced.add(chain, this.#options.clock.nowMs());
    this.#origins.record(node, this.#announced.correct(chain));
    if (wasWrong) {
      this.#origins.correct((other) => this.#announced.correct(other));
    }
    this.#announced.keep(this.#origins.chains());
  }

  /** Finds blocks that the node announced itself, and blocks of other nodes whose hash commits to their parent. */
  #finder(node: UpstreamNode): FindBlock {
    const own = new Map(this.#origins.chainOf(node)?.blocks.map((sealed) => [sealed.block.hash, sealed]));
    return (hash) => own.get(hash) ?? this.#announced.find(hash);
  }

  async #readChain(node: UpstreamNode, head: SealedBlock, ring: BlockRing): Promise<NodeChain | undefined> {
    const { identity, signal } = this.#options;
    let isOther: boolean | undefined;
    const path = await findChainPath(ring, head, async (range, hash) => {
      if (range.to <= ring.latest.number) {
        isOther ??= (await identity.verify(node)).kind !== "same";
        if (isOther) {
          return [];
        }
      }
      return readLinked(node, range, hash, signal);
    });
    const [lowest] = path?.blocks ?? [];
    return path?.joined === true && lowest !== undefined
      ? { base: { number: lowest.block.number - 1n, hash: lowest.block.parentHash }, blocks: path.blocks }
      : undefined;
  }
}
