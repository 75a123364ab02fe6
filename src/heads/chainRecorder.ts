import { isCanonicalIn } from "../core/heads.ts";
import { NodeError } from "../core/node.ts";
import type { Hash } from "../ethereum/hex.ts";
import { headScope, readBlocks, readLinked, type SealedBlock } from "../nodes/blockReads.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";
import { AnnouncedBlocks, type FindBlock, headOf, linkHead, type NodeChain, rejoin } from "./announcedBlocks.ts";
import type { BlockRing } from "./blockRing.ts";
import { MAX_GAP_BLOCKS, readPath } from "./chainPath.ts";
import type { FollowedOrigins } from "./followedOrigins.ts";
import type { NewRingsOptions } from "./newRings.ts";

/** Links the heads of all nodes to the ring, and records each node's blocks above it. */
export class ChainRecorder {
  readonly #options: NewRingsOptions;
  readonly #origins: FollowedOrigins;
  readonly #announced = new AnnouncedBlocks();

  constructor(options: NewRingsOptions, origins: FollowedOrigins) {
    this.#options = options;
    this.#origins = origins;
  }

  /** Returns when a block was first announced. Undefined if it is not above the ring. */
  seenMs(hash: Hash): number | undefined {
    return this.#announced.seenMs(hash);
  }

  /** Rule 6. Links a node's head to the ring: by announced blocks, or by blocks read from it. Returns false if it does not link. */
  async record(node: UpstreamNode, announced: SealedBlock): Promise<boolean> {
    const { canonical } = this.#options;
    const { ring } = canonical;
    if (ring === undefined) {
      return false;
    }
    const { number, hash } = announced.block;
    if (this.#origins.isOlderHead(node, announced.block, ring)) {
      return true;
    }
    if (isCanonicalIn(ring, announced.block)) {
      this.#recordChain(node, { base: { number, hash }, blocks: [] });
      return true;
    }
    const isBelow = number <= ring.oldest;
    const head = isBelow ? announced : await this.#endOfBranch(node, announced, ring);
    if (head === undefined) {
      return true;
    }
    const isFar = head.block.number - ring.latest.number > MAX_GAP_BLOCKS;
    const chain = isBelow || isFar ? undefined : await this.#link(node, head, ring);
    // The ring may have changed while a slow node was read.
    const joined = chain === undefined || canonical.ring === ring ? chain : rejoin(chain, ring, canonical.ring ?? ring);
    if (joined !== undefined) {
      this.#recordChain(node, joined);
      return true;
    }
    if (canonical.ring !== ring) {
      return this.record(node, head);
    }
    this.#origins.recordDetached(node, head);
    // Rule 6. The head of one origin alone is decided at once, with its chain.
    if (!this.#isAlone(ring)) {
      await this.#options.identity.recheck(node);
    }
    return isBelow;
  }

  /**
   * Rule 5. Returns the end of the branch that a node announces, so that the served head does not go down block by block. An origin
   * that is alone may still have the served head: one of its machines is behind, on a replaced branch. Then it returns undefined.
   */
  async #endOfBranch(node: UpstreamNode, head: SealedBlock, ring: BlockRing): Promise<SealedBlock | undefined> {
    const { signal } = this.#options;
    const { latest } = ring;
    const known = this.#origins.chainOf(node);
    const isKnown = known !== undefined && headOf(known).hash === head.block.hash;
    if (head.block.number > latest.number || isKnown || !this.#isAlone(ring)) {
      return head;
    }
    const [served, newest] = await readBlocks(node, [latest.number, "latest"], headScope(signal));
    // A node may state by an error that it does not have a block.
    if (served instanceof NodeError && served.kind !== "missingData") {
      throw served;
    }
    if (served !== undefined && !(served instanceof NodeError) && served.block.hash === latest.hash) {
      return undefined;
    }
    const end = newest instanceof NodeError || newest === undefined ? head : newest;
    return end.block.number > head.block.number ? end : head;
  }

  /** Whether one origin alone decides. */
  #isAlone(ring: BlockRing): boolean {
    return this.#options.agree === 1 || this.#origins.voters(ring).length <= 1;
  }

  async #link(node: UpstreamNode, head: SealedBlock, ring: BlockRing): Promise<NodeChain | undefined> {
    return linkHead(head, ring, this.#finder(node)) ?? (await this.#readChain(node, head, ring));
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

  /** Below the served head, the node may be of another chain: that is checked first. */
  async #readChain(node: UpstreamNode, head: SealedBlock, ring: BlockRing): Promise<NodeChain | undefined> {
    const { identity, signal } = this.#options;
    let isOther: boolean | undefined;
    const blocks = await readPath(ring, head, async (range, hash) => {
      if (range.to <= ring.latest.number) {
        isOther ??= (await identity.verify(node)).kind !== "same";
        if (isOther) {
          return [];
        }
      }
      return readLinked(node, range, hash, signal);
    });
    const [lowest] = blocks ?? [];
    return blocks !== undefined && lowest !== undefined
      ? { base: { number: lowest.block.number - 1n, hash: lowest.block.parentHash }, blocks }
      : undefined;
  }
}
