import type { SealedBlock } from "../nodes/blockReads.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";
import { headOf, isOnChain } from "./announcedBlocks.ts";
import type { BlockRing } from "./blockRing.ts";
import type { ChainPath } from "./chainPath.ts";
import { ChainRecorder } from "./chainRecorder.ts";
import { type AgreedBlock, decideHead, isHeld, requiredOrigins, type Voter } from "./decideHead.ts";
import { FollowedOrigins } from "./followedOrigins.ts";
import type { HeadReporter } from "./headReporter.ts";
import { NewRings, type NewRingsOptions } from "./newRings.ts";

export interface HeadAgreementOptions extends Omit<NewRingsOptions, "serve" | "lostSinceMs"> {
  readonly reporter: Pick<HeadReporter, "onContradiction" | "onExcluded" | "onMovedBack">;
}

/** Delay before the next decision after a failed one. */
const RETRY_MS = 1_000;
/** Agreed blocks are served one after the other if origins lost their votes. */
const MAX_STEPS = 16;

/** Serves the head that decideHead finds, and links the heads of all nodes for it. */
export class HeadAgreement {
  readonly #options: HeadAgreementOptions;
  readonly #origins: FollowedOrigins;
  readonly #chains: ChainRecorder;
  readonly #newRings: NewRings;
  #waiting: AbortController | undefined;
  /** Reads of heads that may be served. */
  readonly #reads = new Set<Promise<void>>();
  #isSearching = false;
  #isContradicted = false;
  #served: string | undefined;
  #servedMs = 0;
  #lostSinceMs: number | undefined;
  #resumedMs = Number.NEGATIVE_INFINITY;

  constructor(options: HeadAgreementOptions) {
    this.#options = options;
    this.#origins = new FollowedOrigins(options);
    const shared: NewRingsOptions = {
      ...options,
      serve: (path, base) => this.#serve(path, base),
      lostSinceMs: () => this.#lostSinceMs,
    };
    this.#chains = new ChainRecorder(shared, this.#origins);
    this.#newRings = new NewRings(shared, this.#origins);
  }

  /** The first node, in the order of preference, that has the served head. If none has it, the first one. */
  get source(): UpstreamNode | undefined {
    const { nodes, canonical } = this.#options;
    const { ring } = canonical;
    if (ring === undefined) {
      return undefined;
    }
    const identified = nodes.filter(({ identity }) => identity.isIdentified);
    const serving = identified.find((node) => {
      const chain = this.#origins.chainOf(node);
      return chain !== undefined && isOnChain(chain, ring.latest, ring);
    });
    return serving ?? identified[0];
  }

  /** One node of each origin that can be connected to, and how many of them must report a block as safe or final. */
  get reporters(): { readonly nodes: readonly UpstreamNode[]; readonly required: number } {
    const nodes = this.#origins.reporters();
    return { nodes, required: requiredOrigins("auto", nodes.length) };
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
    this.#lostSinceMs = undefined;
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
    if (this.#options.canonical.ring === undefined) {
      this.#origins.recordDetached(node, head);
      this.#serveAgreed();
      return true;
    }
    if (this.#origins.isIgnored(node)) {
      return true;
    }
    const isLinked = await this.#chains.record(node, head);
    this.#serveAgreed();
    return isLinked;
  }

  /** Runs reads outside the polls, so that no poll waits for another node. */
  #read(read: () => Promise<void>): void {
    // The node may fail while its blocks are read: decide again later.
    const reading = read()
      .catch(() => this.#waitFor(RETRY_MS))
      .finally(() => this.#reads.delete(reading));
    this.#reads.add(reading);
  }

  /** Serves the block that enough origins have. */
  #serveAgreed(): void {
    this.#waiting?.abort();
    for (let step = 0; step < MAX_STEPS; step++) {
      const { ring } = this.#options.canonical;
      if (ring === undefined) {
        this.#beginRing();
        return;
      }
      const voters = this.#origins.voters(ring);
      this.#watchServed(ring, voters);
      if (this.#newRings.isDue(ring)) {
        this.#search(() => this.#newRings.search(ring));
      }
      if (!this.#decide(ring, voters)) {
        return;
      }
    }
  }

  /** Notes since when the head is served, and since when no origin with a vote has it. */
  #watchServed(ring: BlockRing, voters: readonly Voter[]): void {
    const nowMs = this.#options.clock.nowMs();
    if (this.#served !== ring.latest.hash) {
      this.#served = ring.latest.hash;
      this.#servedMs = nowMs;
      this.#lostSinceMs = undefined;
    }
    this.#lostSinceMs = isHeld(voters, ring) ? undefined : (this.#lostSinceMs ?? nowMs);
  }

  /** Decides once. Returns whether to decide again. */
  #decide(ring: BlockRing, voters: readonly Voter[]): boolean {
    const { canonical, agree, blockTimeMs, clock } = this.#options;
    const { required, agreed, next } = decideHead({
      ...{ ring, voters, connected: this.#origins.connected(), agree, blockTimeMs: blockTimeMs() },
      ...{ nowMs: clock.nowMs(), servedMs: this.#servedMs, lostSinceMs: this.#lostSinceMs },
      seenMs: (hash) => Math.max(this.#chains.seenMs(hash) ?? this.#servedMs, this.#resumedMs),
    });
    if (agreed !== undefined && this.#isNew(agreed, ring)) {
      return this.#serveBlock(agreed, required > 1, ring);
    }
    this.#setContradicted(next.kind === "one" || (next.kind === "wait" && next.isContradicted === true));
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
        return this.#serveOne(next.voter, ring);
      case "back":
        return agreed !== undefined && this.#serveBack(agreed, required > 1, ring);
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

  #serveBlock({ number, chain }: AgreedBlock, isAgreed: boolean, ring: BlockRing): boolean {
    const blocks = chain.blocks.slice(0, Number(number - chain.base.number));
    const isServed = this.#serve({ blocks, joined: true, isAgreed }, ring);
    const { ring: served } = this.#options.canonical;
    if (isServed && isAgreed && served !== undefined) {
      this.#origins.excludeContradicting(served.latest, served);
    }
    return isServed;
  }

  /** Rule 2. Serves the head of one of the origins that contradict each other. Returns whether it is new. */
  #serveOne({ chains }: Voter, ring: BlockRing): boolean {
    const going = chains.filter(({ blocks }) => blocks.length > 0);
    const highest = going.toSorted((a, b) => Number(headOf(b).number - headOf(a).number));
    const chain = highest.find((each) => isOnChain(each, ring.latest, ring)) ?? highest[0];
    return chain !== undefined && this.#serve({ blocks: chain.blocks, joined: true }, ring);
  }

  /** Rule 5. Moves the served head back to a block of the ring. */
  #serveBack({ number }: AgreedBlock, isAgreed: boolean, ring: BlockRing): boolean {
    const { canonical, reporter } = this.#options;
    reporter.onMovedBack(ring.latest);
    const isMoved = canonical.moveBack(ring, number, isAgreed);
    this.#rejoin(ring);
    return isMoved;
  }

  /** Serves the blocks of a path. Returns false if `before`, the ring that the path was found for, was replaced. */
  #serve(path: ChainPath, before: BlockRing | undefined): boolean {
    const { canonical, identity } = this.#options;
    const [lowest] = path.blocks;
    const genesis = lowest?.block.number === 0n ? lowest.block.hash : path.genesis;
    // The reset comes first, so that listeners to the new head already use the new chain's cache keys.
    if (genesis !== undefined && canonical.ring === before) {
      identity.reset(genesis);
    }
    const isServed = canonical.extend(before, path);
    this.#rejoin(before);
    return isServed;
  }

  /** Applies a change of the ring to the chains of the origins. */
  #rejoin(before: BlockRing | undefined): void {
    const { ring } = this.#options.canonical;
    if (before !== undefined && ring !== undefined && ring !== before) {
      this.#origins.rejoin(before, ring);
    }
  }

  /** Begins the first ring, once enough origins have reported their heads. */
  #beginRing(): void {
    const forMs = this.#newRings.firstWaitMs();
    if (forMs > 0) {
      this.#waitFor(forMs);
    } else {
      this.#search(() => this.#newRings.begin());
    }
  }

  /** Looks for a head that begins a ring. Then links all heads to this ring. */
  #search(search: () => Promise<boolean>): void {
    if (this.#isSearching) {
      return;
    }
    this.#isSearching = true;
    this.#read(async () => {
      const isServed = await search().finally(() => {
        this.#isSearching = false;
      });
      for (const { node, head } of isServed ? this.#origins.unlinked() : []) {
        this.#read(async () => {
          await this.#chains.record(node, head);
          this.#serveAgreed();
        });
      }
      // Without a ring, the next head searches again.
      if (this.#options.canonical.ring !== undefined) {
        this.#serveAgreed();
      }
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
