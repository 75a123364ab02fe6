import { readLinked } from "../nodes/blockReads.ts";
import type { SealedBlock } from "../nodes/sealedBlock.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";
import type { OfferedHead } from "./agreedHead.ts";
import { AnnouncedBlocks } from "./announcedBlocks.ts";
import type { BlockRing } from "./blockRing.ts";
import { findChainPath, MAX_GAP_BLOCKS } from "./chainPath.ts";
import { type AgreedBlock, decideHead, type HeadDecision, requiredOrigins, type Voter } from "./decideHead.ts";
import { DetachedHeads, type DetachedHeadsOptions } from "./detachedHeads.ts";
import { FirstHeads } from "./firstHeads.ts";
import { FollowedOrigins } from "./followedOrigins.ts";
import { type FindBlock, linkHead, type NodeChain, sealedBlocksOf } from "./nodeChain.ts";

export interface HeadAgreementOptions extends DetachedHeadsOptions {
  /** Called when origins contradict each other without a majority, and when they do not any more. */
  readonly onContradiction: (isContradicted: boolean) => void;
  readonly onExcluded: (node: UpstreamNode, isExcluded: boolean) => void;
}

/** Delay before the next decision after a failed one. */
const RETRY_MS = 1_000;
/** Agreed blocks are served one after the other if origins lost their votes. */
const MAX_STEPS = 16;

/**
 * Serves the highest block that enough origins have. While only one origin has a vote, or origins contradict each other
 * without a majority, HeadSelection decides about the heads of one origin.
 */
export class HeadAgreement {
  readonly #options: HeadAgreementOptions;
  readonly #origins: FollowedOrigins;
  readonly #detached: DetachedHeads;
  readonly #isShared: boolean;
  readonly #first: FirstHeads;
  #waiting: AbortController | undefined;
  readonly #announced = new AnnouncedBlocks();
  #isContradicted = false;
  #served: string | undefined;
  #servedMs = 0;
  #resumedMs = Number.NEGATIVE_INFINITY;

  constructor(options: HeadAgreementOptions) {
    this.#options = options;
    this.#origins = new FollowedOrigins(options);
    this.#detached = new DetachedHeads(options, this.#origins);
    this.#first = new FirstHeads(options, async (offered, served) => {
      for (const { node, head } of offered) {
        await this.#record(node, head);
      }
      await this.#serveAgreed(served);
    });
    this.#isShared = options.agree !== 1 && new Set(options.nodes.map(({ origin }) => origin)).size > 1;
  }

  /** One node of each origin that can be reached, and how many of them must report a block as safe or final. */
  get reporters(): { readonly nodes: readonly UpstreamNode[]; readonly required: number } {
    const { canonical, selection, agree } = this.#options;
    const { leader } = selection;
    const nodes = this.#isShared && canonical.ring !== undefined ? this.#origins.reporters() : [];
    return nodes.length > 0 || leader === undefined
      ? { nodes, required: requiredOrigins(agree, nodes.length) }
      : { nodes: [leader], required: 1 };
  }

  /** Whether the heads of a node do not count. */
  isExcluded(name: string): boolean {
    return this.#options.nodes.some((node) => node.name === name && this.#origins.isExcluded(node));
  }

  /** No heads are offered until `resume`, so that no origin lacks a block. */
  pause(): void {
    this.#waiting?.abort();
  }

  /** Origins have their time to report a block from now on. */
  resume(): void {
    this.#servedMs = this.#options.clock.nowMs();
    this.#resumedMs = this.#servedMs;
  }

  /** Records a node's newest block, and serves it if enough origins have it. Returns false if it does not link to the ring. */
  async offerHead(node: UpstreamNode, head: SealedBlock): Promise<boolean> {
    const { canonical, selection } = this.#options;
    if (!this.#isShared) {
      return selection.offerHead(node, head);
    }
    if (canonical.ring === undefined) {
      await this.#first.offer(node, head);
      return true;
    }
    if (this.#origins.isIgnored(node)) {
      return true;
    }
    const isLinked = await this.#record(node, head);
    await this.#serveAgreed({ node, head });
    return isLinked;
  }

  /** Links the head to the ring: by announced blocks, or by blocks that are read from the node. Returns false if it does not link. */
  async #record(node: UpstreamNode, head: SealedBlock): Promise<boolean> {
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
    if (canonical.ring !== ring) {
      return this.#record(node, head);
    }
    if (chain === undefined) {
      this.#origins.recordDetached(node, head.block);
      await selection.verifyDisagreeing(node);
      return false;
    }
    this.#recordChain(node, chain);
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

  /** Serves the block that enough origins have. `offered` was just announced. */
  async #serveAgreed(offered?: OfferedHead): Promise<void> {
    this.#waiting?.abort();
    for (let step = 0; step < MAX_STEPS; step++) {
      const { ring } = this.#options.canonical;
      if (ring === undefined) {
        return;
      }
      await this.#serveDetached(ring);
      // If blocks were added during a read, the decision is about the new ring.
      if (this.#options.canonical.ring === ring && !(await this.#decide(ring, offered))) {
        return;
      }
    }
  }

  #decisionAbout(ring: BlockRing): HeadDecision {
    const { agree, blockTimeMs, clock } = this.#options;
    return decideHead({
      ...{
        ring,
        voters: this.#origins.voters(ring),
        reachable: this.#origins.countReachable(),
        agree,
        blockTimeMs: blockTimeMs(),
        nowMs: clock.nowMs(),
        servedMs: this.#servedMs,
      },
      seenMs: (hash) => Math.max(this.#announced.seenMs(hash) ?? this.#servedMs, this.#resumedMs),
    });
  }

  /** Decides once. Returns whether to decide again. */
  async #decide(ring: BlockRing, offered: OfferedHead | undefined): Promise<boolean> {
    const { canonical, clock } = this.#options;
    if (this.#served !== ring.latest.hash) {
      this.#served = ring.latest.hash;
      this.#servedMs = clock.nowMs();
    }
    const { required, agreed, next } = this.#decisionAbout(ring);
    if (agreed !== undefined && required > 1 && this.#isNew(agreed, ring)) {
      return this.#serve(agreed, ring);
    }
    this.#setContradicted(next.kind === "one" && next.isContradicted);
    if (required > 1 && agreed?.hash === ring.latest.hash) {
      canonical.setAgreed();
    }
    switch (next.kind) {
      case "lag":
        for (const { name } of next.voters) {
          this.#origins.setLagging(name, ring);
        }
        return true;
      case "one":
        await this.#serveOne(next.voter, offered);
        return canonical.ring !== ring;
      case "wait":
        this.#waitFor(next.forMs);
        return false;
      default:
        return false;
    }
  }

  #isNew({ number, hash }: AgreedBlock, ring: BlockRing): boolean {
    return number > ring.latest.number || ring.at(number)?.hash !== hash;
  }

  #serve({ number, chain }: AgreedBlock, ring: BlockRing): boolean {
    const { canonical, selection } = this.#options;
    const blocks = chain.blocks.slice(0, Number(number - chain.base.number));
    const [node] = this.#options.nodes.filter((each) => this.#origins.chainOf(each) === chain);
    if (node === undefined || !selection.serve(node, { blocks, joined: true, isAgreed: true }, ring)) {
      return false;
    }
    this.#afterServed(ring);
    const { ring: served } = canonical;
    if (served !== undefined) {
      this.#origins.judge(served.latest, served);
    }
    return true;
  }

  /** Lets one origin's head be served on its word alone. */
  async #serveOne({ name }: Voter, offered: OfferedHead | undefined): Promise<void> {
    const { canonical, selection } = this.#options;
    const { ring } = canonical;
    const [node] = this.#origins.nodesOf(name);
    const chain = node && this.#origins.chainOf(node);
    if (ring === undefined || node === undefined) {
      return;
    }
    const isOfferedByIt = offered?.node.origin === name;
    const top = chain?.blocks.at(-1) ?? (chain && sealedBlocksOf(ring, chain.base.number)[0]);
    const head = isOfferedByIt ? offered.head : top;
    if (head === undefined || head.block.hash === ring.latest.hash) {
      return;
    }
    const decides = (): boolean => {
      const { next } = this.#decisionAbout(ring);
      return next.kind === "one" && next.voter.name === name;
    };
    await selection.offerHead(isOfferedByIt ? offered.node : node, head, { origin: name, decides });
    this.#afterServed(ring);
  }

  #afterServed(before: BlockRing): void {
    const { ring } = this.#options.canonical;
    if (ring === undefined || ring === before) {
      return;
    }
    this.#origins.rejoin(before, ring);
  }

  /** Serves a head that does not link to the ring, if enough origins have it. */
  async #serveDetached(ring: BlockRing): Promise<void> {
    const known = await this.#detached.serve(ring);
    this.#afterServed(ring);
    for (const { node, head } of known) {
      await this.#record(node, head);
    }
  }

  /** Decides again after this time. */
  #waitFor(forMs: number): void {
    const { clock, signal } = this.#options;
    const waiting = new AbortController();
    this.#waiting?.abort();
    this.#waiting = waiting;
    void clock.sleep(forMs, AbortSignal.any([signal, waiting.signal])).then(() => {
      if (!waiting.signal.aborted && !signal.aborted) {
        // The deciding node may fail while its blocks are read: decide again later.
        this.#serveAgreed().catch(() => this.#waitFor(RETRY_MS));
      }
    });
  }

  #setContradicted(isContradicted: boolean): void {
    if (isContradicted !== this.#isContradicted) {
      this.#isContradicted = isContradicted;
      this.#options.onContradiction(isContradicted);
    }
  }
}
