import type { Hash } from "../ethereum/hex.ts";
import type { SealedBlock } from "../nodes/blockReads.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";
import { headOf, type NodeChain, sealedBlocksOf } from "./announcedBlocks.ts";
import type { BlockRing } from "./blockRing.ts";
import { ChainRecorder } from "./chainRecorder.ts";
import {
  type AgreedBlock,
  decideHead,
  type HeadDecision,
  lagWaitMs,
  type NextStep,
  requiredOrigins,
} from "./decideHead.ts";
import { FollowedOrigins } from "./followedOrigins.ts";
import type { HeadReporter } from "./headReporter.ts";
import type { OfferedHead } from "./unlinkedHeads.ts";
import { DetachedHeads, type DetachedHeadsOptions, FirstHeads } from "./unlinkedHeads.ts";

export interface HeadAgreementOptions extends DetachedHeadsOptions {
  readonly reporter: Pick<HeadReporter, "onContradiction" | "onExcluded">;
}

type OneDecides = Extract<NextStep, { readonly kind: "one" }>;

/** An origin that decides about the head, while its blocks are read. */
interface WaitingDecider {
  readonly name: string;
  /** The served head that its head replaces or extends. */
  readonly above: Hash;
  readonly sinceMs: number;
  isRead: boolean;
}

/** Returns the newest block of a chain. */
const sealedHeadOf = ({ base, blocks }: NodeChain, ring: BlockRing): SealedBlock | undefined =>
  blocks.at(-1) ?? sealedBlocksOf(ring, base.number)[0];

/** Delay before the next decision after a failed one. */
const RETRY_MS = 1_000;
/** Least time for reads of the deciding origin's blocks. */
const MIN_READ_MS = 1_000;
/** Agreed blocks are served one after the other if origins lost their votes. */
const MAX_STEPS = 16;

/**
 * Serves the highest block that enough origins have. While only one origin has a vote, or origins contradict each other
 * without a majority, HeadSelection decides about the heads of one origin.
 */
export class HeadAgreement {
  readonly #options: HeadAgreementOptions;
  readonly #origins: FollowedOrigins;
  readonly #chains: ChainRecorder;
  readonly #detached: DetachedHeads;
  readonly #isShared: boolean;
  readonly #first: FirstHeads;
  #waiting: AbortController | undefined;
  /** Reads of heads that may be served. */
  readonly #reads = new Set<Promise<void>>();
  #isSearching = false;
  #decider: WaitingDecider | undefined;
  #isContradicted = false;
  #served: string | undefined;
  #servedMs = 0;
  #resumedMs = Number.NEGATIVE_INFINITY;

  constructor(options: HeadAgreementOptions) {
    this.#options = options;
    this.#origins = new FollowedOrigins(options);
    this.#chains = new ChainRecorder(options, this.#origins);
    this.#detached = new DetachedHeads(options, this.#origins);
    this.#first = new FirstHeads(options, (offered, served) => this.#recordAll(offered, served));
    this.#isShared = options.agree !== 1 && new Set(options.nodes.map(({ origin }) => origin)).size > 1;
  }

  /** One node of each origin that can be connected to, and how many of them must report a block as safe or final. */
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

  /** Resolves when no head is read that may be served. */
  async readsEnded(): Promise<void> {
    while (this.#reads.size > 0) {
      await Promise.all(this.#reads);
    }
  }

  /**
   * Records a node's newest block, and serves it if enough origins have it. It waits for no other node.
   * Returns false if the block does not link to the ring.
   */
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
    const isLinked = await this.#chains.record(node, head);
    this.#serveAgreed({ node, head });
    return isLinked;
  }

  /** Records heads that were read at once. Each of their origins has a vote from now on. */
  #recordAll(offered: readonly OfferedHead[], served?: OfferedHead): void {
    for (const { node } of offered) {
      this.#origins.expect(node);
    }
    for (const { node, head } of offered) {
      this.#read(async () => {
        await this.#chains.record(node, head);
        this.#serveAgreed(served);
      });
    }
  }

  /** Runs reads outside the polls, so that no poll waits for another node. */
  #read(read: () => Promise<void>): void {
    // The node may fail while its blocks are read: decide again later.
    const reading = read()
      .catch(() => this.#waitFor(RETRY_MS))
      .finally(() => this.#reads.delete(reading));
    this.#reads.add(reading);
  }

  /** Serves the block that enough origins have. `offered` was just announced. */
  #serveAgreed(offered?: OfferedHead): void {
    this.#waiting?.abort();
    for (let step = 0; step < MAX_STEPS; step++) {
      const { ring } = this.#options.canonical;
      if (ring === undefined) {
        return;
      }
      this.#serveDetached(ring);
      if (!this.#decide(ring, offered)) {
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
        connected: this.#origins.connected(),
        agree,
        blockTimeMs: blockTimeMs(),
        nowMs: clock.nowMs(),
        servedMs: this.#servedMs,
      },
      seenMs: (hash) => Math.max(this.#chains.seenMs(hash) ?? this.#servedMs, this.#resumedMs),
    });
  }

  /** Decides once. Returns whether to decide again. */
  #decide(ring: BlockRing, offered: OfferedHead | undefined): boolean {
    const { canonical, clock } = this.#options;
    if (this.#served !== ring.latest.hash) {
      this.#served = ring.latest.hash;
      this.#servedMs = clock.nowMs();
    }
    const { required, agreed, next } = this.#decisionAbout(ring);
    if (agreed !== undefined && required > 1 && this.#isNew(agreed, ring)) {
      return this.#serve(agreed, ring);
    }
    this.#setContradicted((next.kind === "one" || next.kind === "wait") && next.isContradicted === true);
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
        return this.#serveOne(next, ring, offered);
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
      this.#origins.excludeContradicting(served.latest, served);
    }
    return true;
  }

  /** Lets one origin's head be served on its word alone. Returns whether to decide again. */
  #serveOne({ voter, isContradicted }: OneDecides, ring: BlockRing, offered: OfferedHead | undefined): boolean {
    const { selection } = this.#options;
    const { name } = voter;
    const [node] = this.#origins.nodesOf(name);
    const chain = node && this.#origins.chainOf(node);
    if (node === undefined) {
      return false;
    }
    if (chain !== undefined && chain.blocks.length > 0 && headOf(chain).number > ring.latest.number) {
      const isServed = selection.serve(node, { blocks: chain.blocks, joined: true }, ring);
      this.#afterServed(ring);
      return isServed;
    }
    const isOfferedByIt = offered?.node.origin === name;
    const head = isOfferedByIt ? offered.head : chain && sealedHeadOf(chain, ring);
    if (head === undefined || head.block.hash === ring.latest.hash) {
      return false;
    }
    const decider = this.#deciderOf(name, ring);
    if (isContradicted && this.#isLate(decider)) {
      this.#origins.setLagging(name, ring);
      return true;
    }
    // A head that does not link to the ring is being read already.
    if (!decider.isRead && (chain !== undefined || !this.#isSearching)) {
      this.#readOne({ node: isOfferedByIt ? offered.node : node, head }, ring, decider);
    }
    return false;
  }

  /** Returns the state of an origin that decides about the head above the ring. */
  #deciderOf(name: string, { latest }: BlockRing): WaitingDecider {
    if (this.#decider?.name !== name || this.#decider.above !== latest.hash) {
      this.#decider = { name, above: latest.hash, sinceMs: this.#options.clock.nowMs(), isRead: false };
    }
    return this.#decider;
  }

  /** Whether the head of a decider could not be served in its time. If not, the decision is made again after that time. */
  #isLate({ sinceMs }: WaitingDecider): boolean {
    const { clock, blockTimeMs } = this.#options;
    const waitMs = Math.max(this.#servedMs + lagWaitMs(blockTimeMs()), sinceMs + MIN_READ_MS) - clock.nowMs();
    if (waitMs > 0) {
      this.#waitFor(waitMs);
    }
    return waitMs <= 0;
  }

  /** Reads the blocks of a decider, and serves its head if it decides still. */
  #readOne({ node, head }: OfferedHead, ring: BlockRing, decider: WaitingDecider): void {
    const { canonical, selection } = this.#options;
    const decides = (): boolean => {
      const { next } = this.#decisionAbout(canonical.ring ?? ring);
      return this.#decider === decider && next.kind === "one" && next.voter.name === decider.name;
    };
    decider.isRead = true;
    this.#read(async () => {
      try {
        await selection.offerHead(node, head, { origin: decider.name, decides });
      } finally {
        decider.isRead = false;
      }
      if (this.#afterServed(ring)) {
        this.#serveAgreed();
      }
    });
  }

  /** Returns whether the ring changed. */
  #afterServed(before: BlockRing): boolean {
    const { ring } = this.#options.canonical;
    if (ring === undefined || ring === before) {
      return false;
    }
    this.#origins.rejoin(before, ring);
    return true;
  }

  /** Looks for a head that enough origins have and that does not link to the ring, and serves it. */
  #serveDetached(ring: BlockRing): void {
    if (this.#isSearching || !this.#detached.isDue(ring)) {
      return;
    }
    this.#isSearching = true;
    this.#read(async () => {
      const known = await this.#detached.serve(ring).finally(() => {
        this.#isSearching = false;
      });
      this.#afterServed(ring);
      this.#recordAll(known);
      this.#serveAgreed();
    });
  }

  /** Decides again after this time. */
  #waitFor(forMs: number): void {
    const { clock, signal } = this.#options;
    const waiting = new AbortController();
    this.#waiting?.abort();
    this.#waiting = waiting;
    void clock.sleep(forMs, AbortSignal.any([signal, waiting.signal])).then(() => {
      if (!waiting.signal.aborted && !signal.aborted) {
        this.#serveAgreed();
      }
    });
  }

  #setContradicted(isContradicted: boolean): void {
    if (isContradicted !== this.#isContradicted) {
      this.#isContradicted = isContradicted;
      this.#options.reporter.onContradiction(isContradicted);
    }
  }
}
