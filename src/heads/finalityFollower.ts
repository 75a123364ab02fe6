import { readBlock, readBlocks } from "../nodes/blockReads.ts";
import type { Background } from "./blockBackfill.ts";
import type { Finality } from "./canonicalChain.ts";

export interface FinalityFollowerOptions extends Background {
  readonly finality: Finality;
}

const PERIOD_MS = 12_000;
/** Idle, a node is to be asked at most 50 times a minute in all: 30 for latest on a 2 s chain, 5 here, 5 to fill the ring. */
const IDLE_PERIOD_MS = 24_000;
const FIRST_PERIOD_MS = 500;

/** Reads safe and finalized from the node whose head is served; with the operator's depth, the one block below the ring. */
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
