import { readBlock, readBlocks } from "../nodes/blockReads.ts";
import type { Background } from "./blockBackfill.ts";
import type { Finality } from "./canonicalChain.ts";

export interface FinalityFollowerOptions extends Background {
  readonly finality: Finality;
}

const PERIOD_MS = 12_000;
/**
 * While a chain is idle, a node gets up to 50 requests a minute in total.
 * On a chain with 2 s blocks these are 30 for latest, 5 for finality and 5 for the backfill.
 */
const IDLE_PERIOD_MS = 24_000;
const FIRST_PERIOD_MS = 500;

/**
 * Reads the safe and finalized blocks from the leader.
 * If the operator has set a finality depth, it reads only the block at that depth.
 */
export const createFinalityFollower = (options: FinalityFollowerOptions): void => {
  const { canonical, pause, signal, finality, isIdle, leader } = options;

  const read = async (): Promise<void> => {
    const node = leader();
    const { ring, heads } = canonical;
    if (!node || !ring || !heads) {
      return;
    }
    if (finality === "node") {
      const [safe, finalized] = await readBlocks(node, ["safe", "finalized"], signal);
      canonical.setTags({ safe: safe?.block, finalized: finalized?.block });
      return;
    }
    const number = ring.latest.number - BigInt(finality.depth);
    if (heads.finalized === undefined && number >= 0n) {
      const block = (await readBlock(node, number, signal))?.block;
      canonical.setTags({ safe: block, finalized: block });
    }
  };

  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      await read().catch(() => undefined);
      const periodMs = canonical.ring ? (isIdle() ? IDLE_PERIOD_MS : PERIOD_MS) : FIRST_PERIOD_MS;
      await pause(periodMs);
    }
  };

  void run();
};
