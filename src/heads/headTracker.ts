import { type Clock, systemClock } from "../core/clock.ts";
import type { HeadChange, Heads } from "../core/heads.ts";
import { RETRY_LIMITS } from "../core/retryPolicy.ts";
import { unavailable } from "../jsonrpc/rpcError.ts";
import { readBlock } from "../nodes/blockReads.ts";
import type { SealedBlock } from "../nodes/sealedBlock.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { createBlockBackfill } from "./blockBackfill.ts";
import { measuredBlockTimeMs } from "./blockTime.ts";
import { type CanonicalChain, createCanonicalChain, type Finality } from "./canonicalChain.ts";
import type { ChainIdentity } from "./chainIdentity.ts";
import { createFinalityFollower } from "./finalityFollower.ts";
import { HeadSelection } from "./headSelection.ts";
import { followNewHeads, type NewHeadsOptions } from "./newHeadsFeed.ts";
import { isIdle as isIdleSince, nextPollMs } from "./pollSchedule.ts";

export interface HeadTrackerOptions {
  readonly chain: string;
  /** Default: measured. */
  readonly blockTimeMs?: number;
  readonly finality: Finality;
  readonly identity: Pick<ChainIdentity, "verify" | "judge" | "reset">;
  readonly clock?: Clock;
}

/** The heads of one chain, followed on all its nodes. */
export interface HeadTracker {
  current(): Heads | undefined;
  /** Somebody asked for something of this chain. */
  markActive(): void;
  /** Asks the nodes now (shared, at most 500 ms) and gives what is then known. */
  refresh(): Promise<Heads>;
  /** `listener` is told every change, also of safe and finalized alone (then `from` and `to` are empty). */
  subscribe(listener: (change: HeadChange) => void): () => void;
  /** The next change. Rejects when the signal is aborted. */
  next(signal: AbortSignal): Promise<HeadChange>;
  /** Pending blocks are sealed ones: look once a block. */
  setNative(native: boolean): void;
  readonly blockTimeMs: number;
}

export interface HeadTracking extends HeadTracker {
  /** From now on heads are read from this node too; pushed ones as well where there is a WebSocket. */
  follow(node: UpstreamNode, push?: Pick<NewHeadsOptions, "url" | "headers">): void;
}

/** A suspended node is looked at again after this. */
const SUSPENDED_STEP_MS = 1_000;

interface Followed {
  readonly node: UpstreamNode;
  polledMs: number;
  newHeadMs: number;
  foundAtOnce: boolean;
  pollsSinceHead: number;
  pushedMs: number | undefined;
  failing: boolean;
}

export const createHeadTracker = (
  options: HeadTrackerOptions,
  { log, metrics }: Telemetry,
  signal: AbortSignal,
): HeadTracking => {
  const { chain, clock = systemClock } = options;
  const listeners = new Set<(change: HeadChange) => void>();
  const followed: Followed[] = [];
  let touchedMs = Number.NEGATIVE_INFINITY;
  let native = false;
  let woken = new AbortController();
  let refreshing: Promise<Heads> | undefined;

  const blockTimeMs = (): number => options.blockTimeMs ?? measuredBlockTimeMs(canonical.heads);

  const measure = ({ heads, from }: HeadChange): void => {
    metrics.head.set({ chain, tag: "latest" }, Number(heads.latest.number));
    for (const tag of ["safe", "finalized"] as const) {
      metrics.head.set({ chain, tag }, Number(heads[tag]?.number ?? 0n));
    }
    if (from.length > 0) {
      metrics.reorgs.inc({ chain });
      metrics.reorgDepth.observe({ chain }, from.length);
      log.info({ chain, depth: from.length, head: heads.latest.number.toString() }, "reorganisation");
    }
    for (const { node } of followed) {
      const lag = node.head === undefined ? 0 : Number(heads.latest.number - node.head);
      metrics.upstreamLag.set({ chain, node: node.name }, Math.max(0, lag));
    }
  };

  const canonical: CanonicalChain = createCanonicalChain(options.finality, (change) => {
    measure(change);
    for (const listener of listeners) {
      try {
        listener(change);
      } catch (error) {
        log.error({ chain, err: error }, "a listener to heads failed");
      }
    }
  });

  const heads = new HeadSelection({
    canonical,
    clock,
    signal,
    identity: options.identity,
    nodes: () => followed.map(({ node }) => node),
    onUnknowable: ({ name }) => log.warn({ chain, node: name }, "node is far below the served head"),
    onRejected: ({ name }, { number, hash }) => {
      metrics.upstreamRejectedHeads.inc({ chain, node: name });
      log.debug({ chain, node: name, number: `${number}`, hash }, "head of a node is not served: nothing confirms it");
    },
    onWithdrawn: ({ number, hash }) =>
      log.warn({ chain, number: `${number}`, hash }, "served head is withdrawn: its node does not have it any more"),
  });

  const take = async (entry: Followed, head: SealedBlock): Promise<boolean> => {
    // A pushed head may be the first word of a node that was restarted.
    await entry.node.confirm();
    const isNew = entry.node.head === undefined || head.block.number > entry.node.head;
    entry.node.announce(head.block);
    if (isNew) {
      entry.newHeadMs = clock.nowMs();
      entry.foundAtOnce = entry.pollsSinceHead <= 1;
      entry.pollsSinceHead = 0;
    }
    const isFirst = canonical.heads === undefined;
    const joined = await heads.offerHead(entry.node, head);
    if (isFirst && joined) {
      wake();
    }
    return joined;
  };

  const poll = async (entry: Followed): Promise<void> => {
    entry.polledMs = clock.nowMs();
    entry.pollsSinceHead += 1;
    try {
      const head = await readBlock(entry.node, "latest", signal);
      if (head) {
        await take(entry, head);
      }
      entry.failing = head === undefined;
    } catch {
      // The node's breaker and metrics have counted it; the next poll is the answer to it.
      entry.failing = true;
    }
    const { latest } = canonical.heads ?? {};
    if (latest) {
      metrics.headAgeSeconds.set({ chain }, Math.max(0, Date.now() / 1000 - Number(latest.timestamp)));
    }
  };

  const pause = async (forMs: number): Promise<void> => {
    if (!signal.aborted) {
      await clock.sleep(forMs, woken.signal);
    }
  };

  const loop = async (entry: Followed): Promise<void> => {
    while (!signal.aborted) {
      const nowMs = clock.nowMs();
      if (!entry.node.identified) {
        await pause(SUSPENDED_STEP_MS);
        continue;
      }
      const dueMs = nextPollMs({ ...entry, blockTimeMs: blockTimeMs(), touchedMs, native }, nowMs);
      if (dueMs <= nowMs) {
        await poll(entry);
      } else {
        await pause(dueMs - nowMs);
      }
    }
  };

  /** A header that could not be joined is left to the next poll, so polling begins again. */
  const unpushed = (entry: Followed): void => {
    entry.pushedMs = undefined;
    wake();
  };

  const follow = (entry: Followed, push: Pick<NewHeadsOptions, "url" | "headers">): void => {
    followNewHeads({
      ...push,
      signal,
      onHeader: (header) => {
        entry.pushedMs = clock.nowMs();
        take(entry, header).then(
          (joined) => joined || unpushed(entry),
          () => unpushed(entry),
        );
      },
      withState: (connected) => {
        log.info({ chain, node: entry.node.name }, connected ? "new heads are pushed" : "new heads are polled");
        if (!connected) {
          entry.node.doubt();
          unpushed(entry);
        }
      },
    });
  };

  const wake = (): void => {
    woken.abort();
    woken = new AbortController();
  };

  signal.addEventListener("abort", wake, { once: true });

  const isIdle = (): boolean => isIdleSince(touchedMs, clock.nowMs());
  const background = { canonical, pause, signal, isIdle, leader: () => heads.leader };
  createFinalityFollower({ ...background, finality: options.finality });
  createBlockBackfill(background);

  const refresh = async (): Promise<Heads> => {
    const late = new AbortController();
    const polls = followed.filter(({ node }) => node.available).map(poll);
    await Promise.race([
      Promise.all(polls),
      clock.sleep(RETRY_LIMITS.view.maxRefreshMs, AbortSignal.any([signal, late.signal])),
    ]);
    late.abort();
    if (!canonical.heads) {
      throw unavailable("no node has told its newest block yet");
    }
    return canonical.heads;
  };

  return {
    current: () => canonical.heads,
    markActive: () => {
      const wasIdle = isIdle();
      touchedMs = clock.nowMs();
      if (wasIdle) {
        wake();
      }
    },
    refresh: () => {
      refreshing ??= refresh().finally(() => {
        refreshing = undefined;
      });
      return refreshing;
    },
    subscribe: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    next: (nextSignal) => {
      nextSignal.throwIfAborted();
      const { promise, resolve, reject } = Promise.withResolvers<HeadChange>();
      const onAbort = (): void => reject(nextSignal.reason);
      listeners.add(resolve);
      nextSignal.addEventListener("abort", onAbort, { once: true });
      return promise.finally(() => {
        listeners.delete(resolve);
        nextSignal.removeEventListener("abort", onAbort);
      });
    },
    setNative: (value) => {
      native = value;
      wake();
    },
    get blockTimeMs() {
      return blockTimeMs();
    },
    follow: (node, push) => {
      const entry: Followed = {
        node,
        polledMs: Number.NEGATIVE_INFINITY,
        newHeadMs: Number.NEGATIVE_INFINITY,
        foundAtOnce: false,
        pollsSinceHead: 0,
        pushedMs: undefined,
        failing: false,
      };
      followed.push(entry);
      void loop(entry);
      if (push) {
        follow(entry, push);
      }
    },
  };
};
