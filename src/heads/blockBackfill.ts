import { readLinked } from "../nodes/blockReads.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";
import { RING_BLOCKS } from "./blockRing.ts";
import type { CanonicalChain } from "./canonicalChain.ts";

/** What runs beside the following of heads. */
export interface Background {
  readonly canonical: CanonicalChain;
  /** Ends early when somebody asks after a quiet time, and at the end. */
  readonly pause: (forMs: number) => Promise<void>;
  readonly signal: AbortSignal;
  readonly isIdle: () => boolean;
  /** The node whose head is served. */
  readonly leader: () => UpstreamNode | undefined;
}

const PERIOD_MS = 1_000;
const BATCH_BLOCKS = 50;
const IDLE_PERIOD_MS = 24_000;
const IDLE_BATCH_BLOCKS = 2;
/** Of a node's own budget, at most this part goes into filling. */
const BUDGET_SHARE = 0.25;

/** Fills the ring backwards: fast while somebody asks, else so slowly that an idle forebay costs its nodes next to nothing. */
export const createBlockBackfill = ({ canonical, pause, signal, isIdle, leader }: Background): void => {
  const fill = async (): Promise<void> => {
    const node = leader();
    const { ring } = canonical;
    const bottom = ring?.at(ring.oldest);
    if (!node || !ring || !bottom || ring.oldest === 0n || ring.length >= RING_BLOCKS) {
      return;
    }
    const affordable = Math.max(1, Math.floor((node.requestsPerSecond ?? Number.POSITIVE_INFINITY) * BUDGET_SHARE));
    const wanted = Math.min(isIdle() ? IDLE_BATCH_BLOCKS : BATCH_BLOCKS, affordable, RING_BLOCKS - ring.length);
    const to = ring.oldest - 1n;
    const from = to - BigInt(wanted) + 1n;
    const blocks = await readLinked(node, { from: from > 0n ? from : 0n, to }, bottom.parentHash, signal);
    if (blocks.length > 0) {
      canonical.fill(blocks.reverse());
    }
  };

  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      await fill().catch(() => undefined);
      await pause(isIdle() ? IDLE_PERIOD_MS : PERIOD_MS);
    }
  };

  void run();
};
