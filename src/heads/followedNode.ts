import type { Clock } from "../core/clock.ts";
import { BackOff } from "../nodes/backOff.ts";
import { type PolledHead, parseSealedBlock, pollHead, type SealedBlock } from "../nodes/blockReads.ts";
import { NodeSubscription } from "../nodes/nodeSubscription.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";
import type { HeadReporter } from "./headReporter.ts";
import { type HeadActivity, isPushed, nextPollMs, type PollSchedule } from "./pollSchedule.ts";

/** The WebSocket that pushes a node's heads. */
export interface HeadPush {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface FollowedNodeOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly activity: HeadActivity;
  /** Returns the part of the poll schedule that all nodes of the chain share. */
  readonly schedule: () => Pick<PollSchedule, "blockTimeMs" | "lastRequestMs" | "native" | "hasFeed">;
  /** Offers a node's newest block to the chain. Returns false if the chain could not be extended to it. */
  readonly offerHead: (node: UpstreamNode, head: SealedBlock) => Promise<boolean>;
  /** Whether clients read each new block of this node in full. Then a poll returns what they read. */
  readonly isReadInFull: (node: UpstreamNode) => boolean;
  readonly onPolled: () => void;
  readonly reporter: Pick<HeadReporter, "onPushState" | "onPushFault">;
}

/**
 * After as many polls that failed in a row, the next one follows later each time. A node that fails nine of ten is polled as others
 * are, so that its heads arrive within 15 s (docs/architecture.md, Agreement).
 */
const BACKOFF = { failures: 15, openMs: 1_000, maxOpenMs: 5_000 };
/** A node that has not answered a poll is polled again after this time. Its late answer counts too. */
const MAX_POLL_MS = 5_000;
/** The pause before the next check whether a node is identified, and whether it is used. */
const SUSPENDED_STEP_MS = 1_000;

/** Reads the newest blocks of one node: by polls on a schedule, and by pushes if it has a WebSocket. */
export class FollowedNode {
  readonly node: UpstreamNode;
  readonly #options: FollowedNodeOptions;
  #polledMs = Number.NEGATIVE_INFINITY;
  #newHeadMs = Number.NEGATIVE_INFINITY;
  #foundByFirstPoll = false;
  #pollsSinceHead = 0;
  #pushedMs: number | undefined;
  /** Whether its WebSocket has sent a head since it was connected. */
  #isConnected = false;
  #polls = 0;
  /** The newest poll that was answered. */
  #answered = 0;
  /** Whether the last poll was. If not, the next one asks for less. */
  #isAnswered = false;
  readonly #breaker: BackOff;

  constructor(node: UpstreamNode, options: FollowedNodeOptions) {
    this.node = node;
    this.#options = options;
    this.#breaker = new BackOff({ ...BACKOFF, nowMs: () => options.clock.nowMs() });
  }

  /** Follows the node until the signal is aborted. */
  start(push: HeadPush | undefined): void {
    void this.#pollOnSchedule();
    if (push) {
      this.#subscribe(push);
    }
  }

  /** Whether its WebSocket sends its heads. */
  get isPushed(): boolean {
    const { clock, schedule } = this.#options;
    return isPushed({ ...schedule(), pushedMs: this.#pushedMs }, clock.nowMs());
  }

  /** Reads the newest block once. Never rejects. */
  async poll(): Promise<void> {
    const { clock, signal, isReadInFull, onPolled } = this.#options;
    this.#polledMs = clock.nowMs();
    this.#pollsSinceHead += 1;
    this.#polls += 1;
    const poll = this.#polls;
    try {
      const polled = await pollHead(this.node, this.#isAnswered && isReadInFull(this.node), signal);
      // The answer to a later poll may have come first.
      if (polled && poll >= this.#answered) {
        this.#answered = poll;
        await this.#onHead(polled.head, polled);
      }
      this.#recordPoll(polled !== undefined);
    } catch {
      // The node's breaker and metrics have counted the error. The next poll is the retry.
      this.#recordPoll(false);
    }
    onPolled();
  }

  #recordPoll(isAnswered: boolean): void {
    this.#isAnswered = isAnswered;
    if (isAnswered) {
      // A poll for a client may be early.
      this.#breaker.reset();
    } else {
      this.#breaker.failed();
    }
  }

  async #pollOnSchedule(): Promise<void> {
    const { clock, signal, activity } = this.#options;
    while (!signal.aborted) {
      const { identity, isResting } = this.node;
      // The heads of a node that is not used do not count, and each poll costs units.
      const waitMs = identity.isIdentified && !isResting ? this.#nextPollMs() - clock.nowMs() : SUSPENDED_STEP_MS;
      if (waitMs > 0) {
        await activity.pause(waitMs);
      } else {
        const late = new AbortController();
        await Promise.race([this.poll(), clock.sleep(MAX_POLL_MS, AbortSignal.any([signal, late.signal]))]);
        late.abort();
      }
    }
  }

  #nextPollMs(): number {
    const { clock, schedule } = this.#options;
    const nowMs = clock.nowMs();
    const scheduledMs = nextPollMs(
      {
        ...schedule(),
        polledMs: this.#polledMs,
        newHeadMs: this.#newHeadMs,
        foundByFirstPoll: this.#foundByFirstPoll,
        pushedMs: this.#pushedMs,
      },
      nowMs,
    );
    return Math.max(scheduledMs, nowMs + this.#breaker.retryInMs);
  }

  async #onHead(head: SealedBlock, polled?: PolledHead): Promise<boolean> {
    const { node } = this;
    // A pushed head may be the first message of a node that was restarted.
    await node.identity.confirm();
    const isNew = node.head === undefined || head.block.number > node.head;
    node.health.recordHead(head.block);
    if (isNew) {
      node.health.recordPolled(polled);
      this.#newHeadMs = this.#options.clock.nowMs();
      this.#foundByFirstPoll = this.#pollsSinceHead <= 1;
      this.#pollsSinceHead = 0;
    }
    return this.#options.offerHead(node, head);
  }

  /** Subscribes to the node's `newHeads`, and subscribes again after each disconnect, until the signal is aborted. */
  #subscribe(push: HeadPush): void {
    const { signal, clock, reporter } = this.#options;
    let isUnreachable = false;
    const subscription = new NodeSubscription({
      ...push,
      signal,
      params: ["newHeads"],
      onResult: (result) => {
        const header = parseSealedBlock(result);
        if (header === undefined) {
          return;
        }
        subscription.resetBackoff();
        isUnreachable = false;
        this.#setConnected(true);
        this.#pushedMs = clock.nowMs();
        this.#onHead(header).then(
          (joined) => joined || this.#resumePolls(),
          () => this.#resumePolls(),
        );
      },
      onClosed: (reason) => {
        this.#setConnected(false);
        if (reason !== undefined && !isUnreachable) {
          isUnreachable = true;
          reporter.onPushFault(this.node, { host: new URL(push.url).host, reason });
        }
      },
    });
  }

  #setConnected(isConnected: boolean): void {
    if (isConnected === this.#isConnected) {
      return;
    }
    this.#isConnected = isConnected;
    this.#options.reporter.onPushState(this.node, isConnected);
    if (!isConnected) {
      this.node.identity.requireCheck();
      this.#resumePolls();
    }
  }

  /** Polls again although heads were pushed: the pushed header did not extend the chain, or the connection is lost. */
  #resumePolls(): void {
    this.#pushedMs = undefined;
    this.#options.activity.wake();
  }
}
