import { type Clock, systemClock } from "../core/clock.ts";
import type { HeadChange, Heads, RingBlock } from "../core/heads.ts";
import { timeoutSignal } from "../core/lazySignal.ts";
import type { BlockRange } from "../core/logRange.ts";
import { RETRY_LIMITS } from "../core/retryPolicy.ts";
import { larger } from "../ethereum/bigintOrder.ts";
import { unavailable } from "../jsonrpc/rpcError.ts";
import type { SealedBlock } from "../nodes/blockReads.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { BlockBackfill, KnownAncestors } from "./blockBackfill.ts";
import { RING_HEADERS } from "./blockRing.ts";
import { CanonicalChain, type Finality } from "./canonicalChain.ts";
import type { ChainIdentity } from "./chainIdentity.ts";
import { type Agree, lagWaitMs } from "./decideHead.ts";
import { FinalityFollower } from "./finalityFollower.ts";
import { FollowedNode, type HeadPush } from "./followedNode.ts";
import { HeadAgreement } from "./headAgreement.ts";
import { HeadListeners } from "./headListeners.ts";
import { HeadReporter } from "./headReporter.ts";
import { IdleHeads } from "./idleHeads.ts";
import { HeadActivity, measuredBlockTimeMs, type PollSchedule, skipsBlocks } from "./pollSchedule.ts";

export interface HeadTrackerOptions {
  readonly chain: string;
  /** Default: measured. */
  readonly blockTimeMs?: number | undefined;
  readonly finality: Finality;
  /** The number of origins that must have a block before it is served; default: `auto`. */
  readonly agree?: Agree | undefined;
  /** The chain has a feed, so that each sealed block is read. Default: it has none. */
  readonly hasFeed?: boolean;
  /** All nodes of the chain, in the order of preference. */
  readonly nodes: readonly UpstreamNode[];
  readonly identity: Pick<ChainIdentity, "verify" | "recheck" | "reset">;
  readonly clock?: Clock | undefined;
  /** Blocks that an earlier process or chain served. They are not read again if the head links to them. */
  readonly known?: readonly SealedBlock[] | undefined;
}

/** The first client after an idle time waits for the heads of a fast chain for this time. */
const CATCH_UP_MS = 2_000;
/** A chain that is replaced may serve a head that the nodes of the new one never had. */
const TAKEOVER_MS = 5_000;

/**
 * The heads of one chain, read from all its nodes. Connects the parts that follow a chain: its nodes, their agreement, the canonical
 * chain, and the listeners. It runs until the signal is aborted.
 */
export class HeadTracker {
  readonly #options: HeadTrackerOptions;
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  readonly #activity: HeadActivity;
  readonly #listeners: HeadListeners;
  readonly #reporter: HeadReporter;
  readonly #canonical: CanonicalChain;
  readonly #agreement: HeadAgreement;
  readonly #followed: FollowedNode[] = [];
  #isNative = false;
  #isReadInFull = () => false;
  readonly #idle: IdleHeads;
  readonly #known: KnownAncestors;
  readonly #backfill: BlockBackfill;
  readonly #finality: FinalityFollower;
  #refreshing: Promise<Heads> | undefined;
  #catchingUp: Promise<void> | undefined;
  /** Headers were not read in time, and are still being read. */
  #isReachLate = false;

  constructor(options: HeadTrackerOptions, telemetry: Telemetry, signal: AbortSignal) {
    const { agree = "auto", clock = systemClock, identity } = options;
    const nodes = () => this.#followed.map(({ node }) => node);
    const reporter = new HeadReporter(options.chain, telemetry);
    const listeners = new HeadListeners((error) => reporter.onListenerError(error));
    let isFirst = true;
    const canonical = new CanonicalChain(options.finality, (change) => {
      // The first head ends all pauses: its safe and finalized blocks are read at once.
      if (isFirst) {
        isFirst = false;
        this.#activity.wake();
      }
      reporter.onChange(change, nodes(), this.blockTimeMs);
      listeners.publish(change);
    });
    this.#options = options;
    this.#known = new KnownAncestors(options.known ?? []);
    this.#clock = clock;
    this.#signal = signal;
    this.#activity = new HeadActivity(clock, signal);
    this.#listeners = listeners;
    this.#reporter = reporter;
    this.#canonical = canonical;
    this.#agreement = new HeadAgreement({
      canonical,
      clock,
      signal,
      identity,
      agree,
      nodes: options.nodes,
      blockTimeMs: () => this.blockTimeMs,
      reporter,
    });
    this.#idle = new IdleHeads({
      agreement: this.#agreement,
      agree,
      isIdle: () =>
        this.#refreshing === undefined &&
        this.#activity.isIdle &&
        skipsBlocks(this.#schedule) &&
        !this.#followed.some(({ isPushed }) => isPushed),
      served: () => canonical.heads?.latest.number,
    });
    const { backfill, finality } = this.#startBackground();
    this.#backfill = backfill;
    this.#finality = finality;
  }

  get blockTimeMs(): number {
    return this.#options.blockTimeMs ?? measuredBlockTimeMs(this.#canonical.heads);
  }

  /** Whether the heads of a node do not count, because it contradicted a majority several times in a row. */
  isExcluded(node: string): boolean {
    return this.#agreement.isExcluded(node);
  }

  current(): Heads | undefined {
    return this.#canonical.heads;
  }

  /** The newest block that enough origins report at or above. It is above the served head only while nobody uses a fast chain. */
  get newest(): RingBlock | undefined {
    return this.#idle.newest ?? this.#canonical.heads?.latest;
  }

  /** Resolves when the heads of a fast chain are read that nobody used until now, or after 2 s. Undefined if they need not be. */
  get catchingUp(): Promise<void> | undefined {
    return this.#catchingUp;
  }

  /** Records a client request to this chain. */
  markActive(): void {
    const mayBeBehind = this.#activity.isIdle && skipsBlocks(this.#schedule) && this.#canonical.heads !== undefined;
    this.#activity.markActive();
    if (mayBeBehind) {
      this.#catchUp();
    }
  }

  /** Polls the nodes now, for up to 500 ms, and returns the heads after that. Calls during a refresh share it. */
  refresh(): Promise<Heads> {
    this.#refreshing ??= this.#refresh().finally(() => {
      this.#refreshing = undefined;
    });
    return this.#refreshing;
  }

  /**
   * Reads those of the newest blocks, with their headers, that the ring lacks and the range has. Returns the heads with them, or
   * after 2 s without them. Undefined if the ring has them, if the range is older, or while headers are late.
   */
  reach({ from, to }: BlockRange): Promise<Heads> | undefined {
    const { heads } = this.#canonical;
    if (heads === undefined || this.#isReachLate) {
      return undefined;
    }
    const newest = heads.latest.number - BigInt(RING_HEADERS) + 1n;
    const lowest = larger(from, newest);
    return lowest < heads.oldest && to >= newest ? this.#reach(lowest, heads) : undefined;
  }

  async #reach(lowest: bigint, heads: Heads): Promise<Heads> {
    let isEnded = false;
    await this.#within(CATCH_UP_MS, async () => {
      await this.#backfill.reach(lowest);
      isEnded = true;
      this.#isReachLate = false;
    });
    this.#isReachLate = !isEnded;
    return this.#canonical.heads ?? heads;
  }

  /** The newest canonical blocks with their headers, for the next process or chain. */
  get sealed(): readonly SealedBlock[] {
    const { ring } = this.#canonical;
    const first = ring === undefined ? 0n : ring.latest.number - BigInt(RING_HEADERS) + 1n;
    return Array.from({ length: ring === undefined ? 0 : RING_HEADERS }, (_, index) => {
      const number = first + BigInt(index);
      const block = ring?.at(number);
      const header = ring?.header(number);
      return block && header && { block, header };
    }).filter((sealed) => sealed !== undefined);
  }

  /** Waits until these heads are as high as those of a tracker of the same chain, so that no client sees `latest` move back. */
  async catchUpWith(served: HeadTracker, ending: AbortSignal): Promise<void> {
    // Before, a node that lags has a vote.
    const timeoutMs = lagWaitMs(served.blockTimeMs) + TAKEOVER_MS;
    const signal = AbortSignal.any([ending, timeoutSignal(timeoutMs)]);
    const numberOf = (tracker: HeadTracker): bigint => tracker.current()?.latest.number ?? 0n;
    while (numberOf(this) < numberOf(served) && !signal.aborted) {
      // The heads of a fast chain that nobody uses do not move.
      this.markActive();
      await this.next(signal).catch(() => undefined);
    }
  }

  /** Calls `listener` with each change. If only safe or finalized changes, `from` and `to` are empty. */
  subscribe(listener: (change: HeadChange) => void): () => void {
    return this.#listeners.subscribe(listener);
  }

  /** Returns the next change. Rejects when the signal is aborted. */
  next(signal: AbortSignal): Promise<HeadChange> {
    return this.#listeners.next(signal);
  }

  /** Sealed blocks serve as pending blocks, so that each one must be read. */
  setNative(native: boolean): void {
    this.#isNative = native;
    this.#activity.wake();
  }

  /** Whether clients read each new block in full. Then the polls of one node do. */
  setReadInFull(isReadInFull: () => boolean): void {
    this.#isReadInFull = isReadInFull;
  }

  /** Follows one more node: by polls, and by pushes too if it has a WebSocket. */
  follow(node: UpstreamNode, push?: HeadPush): void {
    const followed = new FollowedNode(node, {
      clock: this.#clock,
      signal: this.#signal,
      activity: this.#activity,
      schedule: () => this.#schedule,
      offerHead: (from, head) => this.#offerHead(from, head),
      isReadInFull: ({ name }) => name === this.#agreement.source?.name && this.#isReadInFull(),
      onPolled: () => this.#reporter.onPolled(this.newest),
      reporter: this.#reporter,
    });
    this.#followed.push(followed);
    followed.start(push);
  }

  /** The part of the poll schedule that all nodes of the chain share. */
  get #schedule(): Pick<PollSchedule, "blockTimeMs" | "lastRequestMs" | "native" | "hasFeed"> {
    return {
      blockTimeMs: this.blockTimeMs,
      lastRequestMs: this.#activity.lastRequestMs,
      native: this.#isNative,
      hasFeed: this.#options.hasFeed === true,
    };
  }

  #startBackground(): { readonly backfill: BlockBackfill; readonly finality: FinalityFollower } {
    const activity = this.#activity;
    const background = {
      canonical: this.#canonical,
      pause: (forMs: number) => activity.pause(forMs),
      signal: this.#signal,
      isIdle: () => activity.isIdle,
      source: () => this.#agreement.source,
    };
    const reporters = () => this.#agreement.reporters;
    const others = () =>
      this.#followed.flatMap(({ node }) => (node.available && node !== this.#agreement.source ? [node] : []));
    // A ring that grows below would be read for again.
    const isBusy = () => this.#catchingUp !== undefined;
    const nowMs = () => this.#clock.nowMs();
    const backfill = new BlockBackfill({ ...background, others, nowMs, isBusy, known: this.#known });
    const finality = new FinalityFollower({
      ...background,
      clock: this.#clock,
      blockTimeMs: () => this.blockTimeMs,
      finality: this.#options.finality,
      reporters,
      reporter: this.#reporter,
    });
    return { backfill, finality };
  }

  async #offerHead(node: UpstreamNode, head: SealedBlock): Promise<boolean> {
    const nodes = this.#followed.map((followed) => followed.node);
    if (this.#idle.records(node, head.block, nodes)) {
      if (this.newest !== undefined) {
        this.#reporter.onRecorded(this.newest, nodes, this.blockTimeMs);
      }
      return true;
    }
    return this.#agreement.offerHead(node, head);
  }

  /** Reads the newest blocks of a chain that becomes active, and which of them are final. */
  #catchUp(): void {
    this.#catchingUp ??= this.#within(CATCH_UP_MS, async () => {
      await this.#pollAll();
      // If it fails, the next period reads it.
      await this.#finality.read().catch(() => undefined);
    }).finally(() => {
      this.#catchingUp = undefined;
    });
  }

  async #refresh(): Promise<Heads> {
    await this.#within(RETRY_LIMITS.view.maxRefreshMs, () => this.#pollAll());
    if (!this.#canonical.heads) {
      throw unavailable("no upstream node has reported a head yet");
    }
    return this.#canonical.heads;
  }

  /** Polls the nodes, and waits until their heads are linked. Never rejects. */
  async #pollAll(): Promise<void> {
    const available = this.#followed.filter(({ node }) => node.available);
    await Promise.all(available.map((followed) => followed.poll()));
    await this.#agreement.readsEnded();
  }

  /** Resolves when the task has ended, or after this time. */
  async #within(timeoutMs: number, task: () => Promise<void>): Promise<void> {
    const late = new AbortController();
    const timeout = this.#clock.sleep(timeoutMs, AbortSignal.any([this.#signal, late.signal]));
    await Promise.race([task(), timeout]);
    late.abort();
  }
}
