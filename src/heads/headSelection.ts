import type { Heads, RingBlock } from "../core/heads.ts";
import { readBlock, readLinked } from "../nodes/blockReads.ts";
import type { IdentityCase } from "../nodes/identityGate.ts";
import type { SealedBlock } from "../nodes/sealedBlock.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";
import type { BlockRing } from "./blockRing.ts";
import { type CanonicalChain, classify } from "./canonicalChain.ts";
import type { ChainIdentity } from "./chainIdentity.ts";
import { type ChainPath, findChainPath } from "./chainPath.ts";
import { readHeadEvidence } from "./headEvidence.ts";
import { HeadLeader, type HeadLeaderOptions, hasBlock, isLinked } from "./headLeader.ts";
import { HeadTrial, sealedBlocksOf } from "./headTrial.ts";

export interface HeadSelectionOptions extends HeadLeaderOptions {
  readonly canonical: CanonicalChain;
  readonly identity: Pick<ChainIdentity, "verify" | "judge" | "reset">;
  /** A node is so far below what is served that its blocks cannot be compared. */
  readonly onUnknowable: (node: UpstreamNode) => void;
  /** A node's head does not link to what is served, and nothing confirms it. */
  readonly onRejected: (node: UpstreamNode, head: RingBlock) => void;
  /** A served head is replaced by an older one because no node has it any more. */
  readonly onWithdrawn: (head: RingBlock) => void;
}

/** If another node's head was served while blocks were read, the decision is repeated. */
const TRIES = 3;
const GENESIS_PERIOD_MS = 60_000;
/** A node that disagrees with what is served is checked for another chain so often, beside the check of all nodes. */
const DISAGREEING_PERIOD_MS = 5_000;
/** A head that nothing confirms is served if this long no other is offered: a reorganisation below the whole ring. */
const UNCONFIRMED_MS = 30_000;
/** A head is withdrawn if its node lacks it for this time: one machine of a node may be behind another. */
const LOST_MS = 5_000;
/** The path that replaces the served ring; `unchanged` for none, undefined if it cannot be decided yet. */
type Decision = ChainPath | "unchanged" | undefined;

/** Decides which node's newest block is served: the highest; a lower or other one only if the chain itself has changed. */
export class HeadSelection {
  readonly #options: HeadSelectionOptions;
  readonly #leader: HeadLeader;
  readonly #verifiedMs = new WeakMap<UpstreamNode, number>();
  readonly #trial: HeadTrial;
  #genesisReadMs = Number.NEGATIVE_INFINITY;
  /** Since when only heads are offered that nothing confirms. */
  #unconfirmedSinceMs: number | undefined;

  constructor(options: HeadSelectionOptions) {
    this.#options = options;
    this.#leader = new HeadLeader(options);
    this.#trial = new HeadTrial({ ...options, leader: this.#leader });
  }

  /** The node whose head is served. */
  get leader(): UpstreamNode | undefined {
    return this.#leader.node;
  }

  /** Serves a node's newest block if it should be. False if the blocks between could not be read, or do not fit. */
  async offerHead(node: UpstreamNode, head: SealedBlock): Promise<boolean> {
    const { canonical } = this.#options;
    for (let attempt = 1; attempt <= TRIES; attempt += 1) {
      const base = canonical.ring;
      const path = await this.#decide(node, head);
      if (path === "unchanged") {
        return true;
      }
      if (!node.identified) {
        return false;
      }
      if (path && canonical.ring === base) {
        return this.#serve(node, path, base);
      }
    }
    return false;
  }

  #serve(node: UpstreamNode, path: ChainPath, base: BlockRing | undefined): boolean {
    const { canonical, identity } = this.#options;
    const [lowest] = path.blocks;
    const genesis = lowest?.block.number === 0n ? lowest.block.hash : path.genesis;
    // The reset comes first, so that listeners to the new head already use the new chain's cache keys.
    if (genesis) {
      identity.reset(genesis);
    }
    if (!path.joined && !genesis) {
      this.#trial.begin(base);
    } else if (!path.joined || path.onto) {
      this.#trial.end();
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
      case "known":
        return this.#decideKnown(node, head, ring);
      case "unknowable":
        return this.#decideBelow(node, head, ring);
      case "conflict":
        return this.#decideConflict(node, head, { ring, heads });
      default:
        return this.#route(node, head, ring);
    }
  }

  /** The head is in the ring: if its node led, it may have lost what is served. */
  async #decideKnown(node: UpstreamNode, { block }: SealedBlock, ring: BlockRing): Promise<Decision> {
    this.#unconfirmedSinceMs = undefined;
    const isLeader = node === this.leader;
    if (isLeader && block.number === ring.latest.number) {
      this.#leader.set(node);
    }
    if (!isLeader) {
      this.#trial.confirm(block);
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
    this.#options.onWithdrawn(ring.latest);
    return { blocks: sealedBlocksOf(ring, top), joined: true };
  }

  /** Another block counts only from the node whose head is served, and only if that node has left what it said before. */
  async #decideConflict(
    node: UpstreamNode,
    head: SealedBlock,
    { ring, heads }: { readonly ring: BlockRing; readonly heads: Heads },
  ): Promise<Decision> {
    const { signal } = this.#options;
    const { number, hash } = heads.latest;
    if (!this.#leader.speaks(node) || (await readBlock(node, number, signal))?.block.hash === hash) {
      await this.#verifyDisagreeing(node);
      return this.#trial.fallBack(node, head, ring);
    }
    // A new branch is announced block by block; its end alone is served, so that the head does not go down and up.
    const end = await readBlock(node, "latest", signal);
    return this.#route(node, end && end.block.number > head.block.number ? end : head, ring);
  }

  /** The head is below the ring: a node that syncs, a chain that began again, or what is served was a lie. */
  async #decideBelow(node: UpstreamNode, head: SealedBlock, ring: BlockRing): Promise<Decision> {
    const { clock, signal, identity, onUnknowable } = this.#options;
    const back = await this.#trial.fallBack(node, head, ring);
    if (back !== "unchanged") {
      return back;
    }
    if (!this.#leader.speaks(node)) {
      await this.#verifyDisagreeing(node);
      return "unchanged";
    }
    // Rarely, as a node that syncs is there for hours.
    const nowMs = clock.nowMs();
    if (nowMs - this.#genesisReadMs < GENESIS_PERIOD_MS) {
      return "unchanged";
    }
    this.#genesisReadMs = nowMs;
    const evidence = await readHeadEvidence(node, ring, head, signal);
    const outcome = await identity.judge(node, evidence.identity);
    if (outcome.kind === "reset" && evidence.hasHead) {
      return { blocks: [head], joined: false, genesis: outcome.genesis };
    }
    if (outcome.kind === "same") {
      onUnknowable(node);
    }
    return "unchanged";
  }

  /** How the head links to the ring; below the ring's newest block only after a check of the node's chain. */
  async #route(node: UpstreamNode, head: SealedBlock, ring: BlockRing): Promise<Decision> {
    const { signal, identity } = this.#options;
    let outcome: IdentityCase | undefined;
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
    const back = await this.#trial.fallBack(node, head, ring);
    if (back !== "unchanged") {
      return back;
    }
    if (path) {
      return this.#confirm(node, head, { ring, path });
    }
    await this.#verifyDisagreeing(node);
    return this.#reject(node, head);
  }

  /** A head that does not link to the ring: served only if something confirms that it is of this chain. */
  async #confirm(
    node: UpstreamNode,
    head: SealedBlock,
    { ring, path }: { readonly ring: BlockRing; readonly path: ChainPath },
  ): Promise<Decision> {
    const { signal, identity, clock } = this.#options;
    const evidence = await readHeadEvidence(node, ring, head, signal);
    const outcome = await identity.judge(node, evidence.identity);
    if (outcome.kind === "other") {
      return "unchanged";
    }
    if (outcome.kind === "reset") {
      return evidence.hasHead ? { ...path, genesis: outcome.genesis } : undefined;
    }
    if (!evidence.hasHead) {
      return this.#reject(node, head);
    }
    if (evidence.hasRingBlock && evidence.hasMiddle) {
      return path;
    }
    const others = this.#leader.others(node);
    const [{ block: lowest } = head] = path.blocks;
    const witnessed = [head.block, { number: lowest.number - 1n, hash: lowest.parentHash }];
    const held = await Promise.all(others.flatMap((other) => witnessed.map((block) => hasBlock(other, block, signal))));
    if (held.includes(true)) {
      return path;
    }
    // Soon after the start the ring is short.
    if (this.#trial.isFirst && others.length === 0 && lowest.number <= ring.oldest) {
      return path;
    }
    if (others.some((other) => isLinked(other, ring))) {
      return this.#reject(node, head);
    }
    this.#unconfirmedSinceMs ??= clock.nowMs();
    return clock.nowMs() - this.#unconfirmedSinceMs < UNCONFIRMED_MS ? this.#reject(node, head) : path;
  }

  #reject(node: UpstreamNode, { block }: SealedBlock): undefined {
    this.#options.onRejected(node, block);
  }

  /** Reads the node's chain id and genesis if that was not done lately. */
  async #verifyDisagreeing(node: UpstreamNode): Promise<void> {
    const { clock, identity } = this.#options;
    const nowMs = clock.nowMs();
    if (nowMs - (this.#verifiedMs.get(node) ?? Number.NEGATIVE_INFINITY) < DISAGREEING_PERIOD_MS) {
      return;
    }
    this.#verifiedMs.set(node, nowMs);
    await identity.verify(node);
  }
}
