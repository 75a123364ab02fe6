import type { Heads } from "../core/heads.ts";
import type { SealedBlock } from "../nodes/blockReads.ts";
import { readBlock, readLinked } from "../nodes/blockReads.ts";
import type { IdentityResult } from "../nodes/identityGate.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";
import { sealedBlocksOf } from "./announcedBlocks.ts";
import type { BlockRing } from "./blockRing.ts";
import { type CanonicalChain, classify } from "./canonicalChain.ts";
import type { ChainIdentity } from "./chainIdentity.ts";
import { type ChainPath, findChainPath, readReplacedBlocks } from "./chainPath.ts";
import type { HeadReporter } from "./headReporter.ts";
import {
  HeadLeader,
  type HeadLeaderOptions,
  hasBlock,
  isLinked,
  ProvisionalHead,
  readHeadEvidence,
} from "./servedHead.ts";

export interface HeadSelectionOptions extends HeadLeaderOptions {
  readonly canonical: CanonicalChain;
  readonly identity: Pick<ChainIdentity, "verify" | "applyIdentity" | "reset">;
  readonly reporter: Pick<HeadReporter, "onBelowRing" | "onRejected" | "onWithdrawn">;
}

/** The decision is repeated if another node's head was served while blocks were read. */
const MAX_ATTEMPTS = 3;
const GENESIS_PERIOD_MS = 60_000;
/** Period of the extra check of a node whose head contradicts the ring: it may be of another chain. */
const DISAGREEING_PERIOD_MS = 5_000;
/** An unconfirmed head is served if no other was offered in this time: a reorganisation may go below the whole ring. */
const UNCONFIRMED_MS = 30_000;
/** A head is withdrawn if its node does not have it for this time: one machine of a node may be behind another. */
const LOST_MS = 5_000;
/** A reorganisation can go below a ring of fewer blocks, soon after the start. */
const SHORT_RING_BLOCKS = 64;
/** The blocks to serve next; `unchanged` for none; undefined if there is no decision yet. */
type Decision = ChainPath | "unchanged" | undefined;

/** The origin that decides about the head, while no other has its word. */
export interface Decider {
  readonly origin: string;
  /** Whether it still does. */
  readonly decides: () => boolean;
}

/**
 * Decides which node's newest block is served. A higher block that links to the ring always is.
 * A lower or conflicting block is served only if the leader's own chain has changed, or has lost the served head.
 */
export class HeadSelection {
  readonly #options: HeadSelectionOptions;
  readonly #leader: HeadLeader;
  readonly #verifiedMs = new WeakMap<UpstreamNode, number>();
  readonly #provisional: ProvisionalHead;
  #genesisReadMs = Number.NEGATIVE_INFINITY;
  /** Time of the first unconfirmed head since the last confirmed one. */
  #unconfirmedSinceMs: number | undefined;

  constructor(options: HeadSelectionOptions) {
    this.#options = options;
    this.#leader = new HeadLeader(options);
    this.#provisional = new ProvisionalHead({ ...options, leader: this.#leader });
  }

  /** The node whose head is served. */
  get leader(): UpstreamNode | undefined {
    return this.#leader.node;
  }

  /**
   * Serves a node's newest block if it is selected. Returns false if the blocks down to the ring cannot be read or linked.
   * Nodes of the origin `decider` may replace the head of any other.
   */
  async offerHead(node: UpstreamNode, head: SealedBlock, decider?: Decider): Promise<boolean> {
    const { canonical } = this.#options;
    this.#leader.decider = decider?.origin;
    // The agreement may have changed while the node of a decider was read: it decides again.
    const attempts = decider === undefined ? MAX_ATTEMPTS : 1;
    for (let attempt = 1; attempt <= attempts; attempt += 1) {
      const base = canonical.ring;
      const path = await this.#decide(node, head);
      if (path === "unchanged") {
        return true;
      }
      if (!node.identity.isIdentified) {
        return false;
      }
      if (path && canonical.ring === base) {
        return decider?.decides() !== false && this.serve(node, path, base);
      }
    }
    return false;
  }

  /** Serves the blocks of a path. Returns false if `base`, the ring that the path was found for, was replaced. */
  serve(node: UpstreamNode, path: ChainPath, base: BlockRing | undefined): boolean {
    const { canonical, identity } = this.#options;
    const [lowest] = path.blocks;
    const genesis = lowest?.block.number === 0n ? lowest.block.hash : path.genesis;
    // The reset comes first, so that listeners to the new head already use the new chain's cache keys.
    if (genesis) {
      identity.reset(genesis);
    }
    if (!path.joined && !genesis) {
      this.#provisional.begin(base);
    } else if (!path.joined || path.onto) {
      this.#provisional.end();
    }
    this.#leader.set(node);
    this.#unconfirmedSinceMs = undefined;
    return canonical.extend(base, path);
  }

  async #decide(node: UpstreamNode, head: SealedBlock): Promise<Decision> {
    const { ring, heads } = this.#options.canonical;
    if (!ring || !heads) {
      return { blocks: [head], joined: false };
    }
    switch (classify(ring, head)) {
      case "inRing":
        return this.#decideInRing(node, head, ring);
      case "belowRing":
        return this.#decideBelowRing(node, head, ring);
      case "conflict":
        return this.#decideConflict(node, head, { ring, heads });
      default:
        return this.#decideByPath(node, head, ring);
    }
  }

  /** Decides on a head in the ring. If its node is the leader, the node may have lost the served head. */
  async #decideInRing(node: UpstreamNode, { block }: SealedBlock, ring: BlockRing): Promise<Decision> {
    this.#unconfirmedSinceMs = undefined;
    const isLeader = node === this.leader;
    if (isLeader && block.number === ring.latest.number) {
      this.#leader.set(node);
    }
    if (!isLeader) {
      this.#provisional.confirm(block);
    }
    if (!isLeader || block.number === ring.latest.number) {
      return "unchanged";
    }
    const others = this.#leader.others(node);
    if (others.length === 0 || !(await this.#leader.isLost(ring.latest, LOST_MS))) {
      return "unchanged";
    }
    const linked = others.filter((other) => isLinked(other, ring)).map((other) => other.head ?? 0n);
    const [top] = [...linked, block.number].sort((a, b) => Number(b - a));
    if (linked.length === 0 || top === undefined || top === ring.latest.number) {
      return "unchanged";
    }
    this.#options.reporter.onWithdrawn(ring.latest);
    return { blocks: sealedBlocksOf(ring, top), joined: true };
  }

  /** Decides on a head at whose number the ring has another block. Only the leader can cause a reorganisation. */
  async #decideConflict(
    node: UpstreamNode,
    head: SealedBlock,
    { ring, heads }: { readonly ring: BlockRing; readonly heads: Heads },
  ): Promise<Decision> {
    const { signal } = this.#options;
    const { number, hash } = heads.latest;
    if (!this.#leader.mayReplaceHead(node) || (await readBlock(node, number, signal))?.block.hash === hash) {
      await this.verifyDisagreeing(node);
      return this.#provisional.restorePrevious(node, head, ring);
    }
    // A node announces a new branch block by block. Serve only its end, so that the head does not go down first.
    const end = await readBlock(node, "latest", signal);
    return this.#decideByPath(node, end && end.block.number > head.block.number ? end : head, ring);
  }

  /** Decides on a head below the ring: the node synchronises, the chain was reset, or the served head is wrong. */
  async #decideBelowRing(node: UpstreamNode, head: SealedBlock, ring: BlockRing): Promise<Decision> {
    const { clock, signal, identity, reporter } = this.#options;
    const back = await this.#provisional.restorePrevious(node, head, ring);
    if (back !== "unchanged") {
      return back;
    }
    if (!this.#leader.mayReplaceHead(node)) {
      await this.verifyDisagreeing(node);
      return "unchanged";
    }
    // A node that synchronises is below the ring for hours, so that this check is rare.
    const nowMs = clock.nowMs();
    if (nowMs - this.#genesisReadMs < GENESIS_PERIOD_MS) {
      return "unchanged";
    }
    this.#genesisReadMs = nowMs;
    const evidence = await readHeadEvidence(node, ring, head, signal);
    const outcome = await identity.applyIdentity(node, evidence.identity);
    if (outcome.kind === "reset" && evidence.hasHead) {
      return { blocks: [head], joined: false, genesis: outcome.genesis };
    }
    if (outcome.kind === "same") {
      reporter.onBelowRing(node);
    }
    return "unchanged";
  }

  /** Decides by the blocks between the ring and the head. Below the ring's newest block, the node's chain is checked first. */
  async #decideByPath(node: UpstreamNode, head: SealedBlock, ring: BlockRing): Promise<Decision> {
    const { signal, identity } = this.#options;
    let outcome: IdentityResult | undefined;
    const path = await findChainPath(ring, head, async (range, hash) => {
      if (range.to <= ring.latest.number) {
        outcome ??= await identity.verify(node);
        if (outcome.kind === "other" || outcome.kind === "unknown") {
          return [];
        }
      }
      return readLinked(node, range, hash, signal);
    });
    if (path?.joined) {
      return path;
    }
    if (outcome?.kind === "other") {
      return "unchanged";
    }
    const back = await this.#provisional.restorePrevious(node, head, ring);
    if (back !== "unchanged") {
      return back;
    }
    if (path) {
      return (await this.#fillReplaced(node, path, ring))
        ? undefined
        : this.#decideUnlinked(node, head, { ring, path });
    }
    await this.verifyDisagreeing(node);
    return this.#reject(node, head);
  }

  /**
   * Fills a short ring down to a reorganisation's fork, so that the published change has all its blocks.
   * Returns whether it did. Then the head is decided again.
   */
  async #fillReplaced(node: UpstreamNode, { blocks: [lowest] }: ChainPath, ring: BlockRing): Promise<boolean> {
    const { canonical, signal } = this.#options;
    const replacesRing = lowest !== undefined && lowest.block.number <= ring.oldest;
    if (!replacesRing || ring.length >= SHORT_RING_BLOCKS) {
      return false;
    }
    const blocks = await readReplacedBlocks(node, ring, signal);
    return blocks.length > 0 && canonical.ring === ring && canonical.fill(blocks);
  }

  /** Decides on a head that does not link to the ring. It is served only if its node or another one shows that it is of this chain. */
  async #decideUnlinked(
    node: UpstreamNode,
    head: SealedBlock,
    { ring, path }: { readonly ring: BlockRing; readonly path: ChainPath },
  ): Promise<Decision> {
    const { signal, identity, clock } = this.#options;
    const evidence = await readHeadEvidence(node, ring, head, signal);
    const outcome = await identity.applyIdentity(node, evidence.identity);
    if (outcome.kind === "other") {
      return "unchanged";
    }
    if (outcome.kind === "reset") {
      return evidence.hasHead ? { ...path, genesis: outcome.genesis } : undefined;
    }
    if (!evidence.hasHead) {
      return this.#reject(node, head);
    }
    if (evidence.hasRingBlock && evidence.hasBlockBetween) {
      return path;
    }
    const others = this.#leader.others(node);
    const [{ block: lowest } = head] = path.blocks;
    const evidenceBlocks = [head.block, { number: lowest.number - 1n, hash: lowest.parentHash }];
    const results = await Promise.all(
      others.flatMap((other) => evidenceBlocks.map((block) => hasBlock(other, block, signal))),
    );
    if (results.includes(true)) {
      return path;
    }
    // Soon after the start, the ring is short.
    if (this.#provisional.isFirst && others.length === 0 && lowest.number <= ring.oldest) {
      return path;
    }
    if (others.some((other) => isLinked(other, ring))) {
      return this.#reject(node, head);
    }
    this.#unconfirmedSinceMs ??= clock.nowMs();
    return clock.nowMs() - this.#unconfirmedSinceMs < UNCONFIRMED_MS ? this.#reject(node, head) : path;
  }

  #reject(node: UpstreamNode, { block }: SealedBlock): undefined {
    this.#options.reporter.onRejected(node, block);
  }

  /** Reads the node's chain id and genesis if that was not done lately. */
  async verifyDisagreeing(node: UpstreamNode): Promise<void> {
    const { clock, identity } = this.#options;
    const nowMs = clock.nowMs();
    if (nowMs - (this.#verifiedMs.get(node) ?? Number.NEGATIVE_INFINITY) < DISAGREEING_PERIOD_MS) {
      return;
    }
    this.#verifiedMs.set(node, nowMs);
    await identity.verify(node);
  }
}
