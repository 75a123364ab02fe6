import type { HeadChange, Heads } from "../chain/heads.ts";
import type { Hash } from "../chain/hex.ts";
import { unavailable } from "../jsonrpc/rpcError.ts";
import type { Telemetry } from "../telemetry.ts";
import { readBlock, readLinked } from "./blockReads.ts";
import { type Canonical, classify, createCanonical, type Finality } from "./canonical.ts";
import { type Clock, systemClock } from "./clock.ts";
import { createFiller } from "./filler.ts";
import { createFinalityFollower } from "./finalityFollower.ts";
import { followNewHeads } from "./newHeads.ts";
import { findPath } from "./path.ts";
import { isIdle as isIdleSince, nextPollMs } from "./rhythm.ts";
import type { SealedBlock } from "./sealedBlock.ts";
import type { UpstreamNode } from "./upstreamNode.ts";

export interface HeadFollowerOptions {
  readonly chain: string;
  /** Default: measured. */
  readonly blockTimeMs?: number;
  readonly finality: Finality;
  /** Of the chain as it is known; `onGenesis` is told another one when the chain has begun anew. */
  readonly genesisHash: () => Hash;
  readonly onGenesis: (hash: Hash) => void;
  readonly clock?: Clock;
}

/** The heads of one chain, followed on all its nodes. */
export interface HeadFollower {
  current(): Heads | undefined;
  /** Somebody asked for something of this chain. */
  touch(): void;
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

export interface HeadFollowing extends HeadFollower {
  /** From now on heads are read from this node too. */
  follow(node: UpstreamNode): void;
}

const REFRESH_MS = 500;
const DEFAULT_BLOCK_TIME_MS = 2_000;
const MIN_BLOCK_TIME_MS = 100;
const MAX_BLOCK_TIME_MS = 12_000;
const MEASURED_BLOCKS = 64n;
const TRIES = 3;
const GENESIS_PERIOD_MS = 60_000;

/** Seconds alone tell nothing of blocks that share one, so many blocks are measured together. */
const measuredBlockTimeMs = (heads: Heads | undefined): number => {
  const { latest } = heads ?? {};
  const number = latest && latest.number - MEASURED_BLOCKS;
  const first = latest && heads?.at(number !== undefined && number > heads.oldest ? number : heads.oldest);
  if (!first || !latest || latest.number === first.number) {
    return DEFAULT_BLOCK_TIME_MS;
  }
  const averageMs = (Number(latest.timestamp - first.timestamp) * 1000) / Number(latest.number - first.number);
  return Math.min(Math.max(averageMs, MIN_BLOCK_TIME_MS), MAX_BLOCK_TIME_MS);
};

interface Followed {
  readonly node: UpstreamNode;
  polledMs: number;
  newHeadMs: number;
  foundAtOnce: boolean;
  pollsSinceHead: number;
  pushedMs: number | undefined;
  failing: boolean;
}

export const createHeadFollower = (
  options: HeadFollowerOptions,
  { log, metrics }: Telemetry,
  signal: AbortSignal,
): HeadFollowing => {
  const { chain, clock = systemClock } = options;
  const listeners = new Set<(change: HeadChange) => void>();
  const followed: Followed[] = [];
  let leader: UpstreamNode | undefined;
  let genesisReadMs = Number.NEGATIVE_INFINITY;
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

  const canonical: Canonical = createCanonical(options.finality, (change) => {
    measure(change);
    for (const listener of listeners) {
      try {
        listener(change);
      } catch (error) {
        log.error({ chain, err: error }, "a listener to heads failed");
      }
    }
  });

  /** A lower or other head counts only from the node whose head is served, and only if that node has left what it said before. */
  const hasLeft = async (node: UpstreamNode, base: Heads): Promise<boolean> => {
    if (leader !== node && leader?.available) {
      return false;
    }
    const there = await readBlock(node, base.latest.number, signal);
    return there?.block.hash !== base.latest.hash;
  };

  /** Far below what is held there is nothing to compare but the genesis block; asked rarely, as a node that syncs is there for hours. */
  const beganAnew = async (node: UpstreamNode): Promise<boolean> => {
    const nowMs = clock.nowMs();
    if ((leader !== node && leader?.available) || nowMs - genesisReadMs < GENESIS_PERIOD_MS) {
      return false;
    }
    genesisReadMs = nowMs;
    const genesis = await readBlock(node, 0n, signal);
    const isOther = genesis !== undefined && genesis.block.hash !== options.genesisHash();
    if (isOther) {
      options.onGenesis(genesis.block.hash);
    }
    return isOther;
  };

  const absorb = async (node: UpstreamNode, head: SealedBlock): Promise<void> => {
    for (let attempt = 1; attempt <= TRIES; attempt += 1) {
      const { ring: base, heads } = canonical;
      const headCase = classify(base, head);
      if (headCase === "known") {
        return;
      }
      if (headCase === "conflict" && heads && !(await hasLeft(node, heads))) {
        return;
      }
      if (headCase === "unknowable" && !(await beganAnew(node))) {
        return;
      }
      const path =
        base && headCase !== "unknowable"
          ? await findPath(base, head, (range, top) => readLinked(node, range, top, signal))
          : { blocks: [head], joined: false };
      if (!path) {
        return;
      }
      if (canonical.extend(base, path)) {
        const isFirst = leader === undefined;
        leader = node;
        const [lowest] = path.blocks;
        if (lowest?.block.number === 0n) {
          options.onGenesis(lowest.block.hash);
        }
        if (isFirst) {
          wake();
        }
        return;
      }
    }
  };

  const take = async (entry: Followed, head: SealedBlock): Promise<void> => {
    const isNew = entry.node.head === undefined || head.block.number > entry.node.head;
    entry.node.announce(head.block.number);
    if (isNew) {
      entry.newHeadMs = clock.nowMs();
      entry.foundAtOnce = entry.pollsSinceHead <= 1;
      entry.pollsSinceHead = 0;
    }
    await absorb(entry.node, head);
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
      const dueMs = nextPollMs({ ...entry, blockTimeMs: blockTimeMs(), touchedMs, native }, nowMs);
      if (dueMs <= nowMs) {
        await poll(entry);
      } else {
        await pause(dueMs - nowMs);
      }
    }
  };

  const wake = (): void => {
    woken.abort();
    woken = new AbortController();
  };

  signal.addEventListener("abort", wake, { once: true });

  const isIdle = (): boolean => isIdleSince(touchedMs, clock.nowMs());
  const background = { canonical, pause, signal, isIdle, leader: () => leader };
  createFinalityFollower({ ...background, finality: options.finality });
  createFiller(background);

  const refresh = async (): Promise<Heads> => {
    const late = new AbortController();
    const polls = followed.filter(({ node }) => node.available).map(poll);
    await Promise.race([Promise.all(polls), clock.sleep(REFRESH_MS, AbortSignal.any([signal, late.signal]))]);
    late.abort();
    if (!canonical.heads) {
      throw unavailable("no node has told its newest block yet");
    }
    return canonical.heads;
  };

  return {
    current: () => canonical.heads,
    touch: () => {
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
    follow: (node) => {
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
      if (node.wsUrl !== undefined) {
        followNewHeads({
          url: node.wsUrl,
          headers: node.headers,
          signal,
          onHeader: (header) => {
            entry.pushedMs = clock.nowMs();
            take(entry, header).catch((error: unknown) => {
              log.debug({ chain, node: node.name, err: error }, "a new head could not be joined yet");
            });
          },
          onState: (connected) => {
            entry.pushedMs = connected ? clock.nowMs() : undefined;
            log.info({ chain, node: node.name }, connected ? "new heads come by WebSocket" : "new heads are polled");
            wake();
          },
        });
      }
    },
  };
};
