import { followHead } from "../../support/servers/followHead.ts";
import type { Service } from "../../support/servers/service.ts";
import type { RandomStateBlocks } from "../state/randomStateBlocks.ts";
import type { StandInChain } from "../state/standInChain.ts";

export interface CompareRoundsOptions {
  readonly chain: StandInChain;
  readonly blocks: RandomStateBlocks;
  readonly service: Service;
  readonly compared: { compareOnce(): Promise<void> };
  readonly rounds: number;
  /** One round in this number is a reorganisation, 1 to 4 blocks deep. */
  readonly reorganisedEvery: number;
}

/** Mines or reorganises in each round, and compares two batches at once. */
export const compareRounds = async (options: CompareRoundsOptions): Promise<void> => {
  const { chain, blocks, service, compared, rounds, reorganisedEvery } = options;
  for (let count = 0; count < rounds; count++) {
    const depth = count % reorganisedEvery === reorganisedEvery - 1 ? 1 + (count % 4) : 0;
    if (depth > 0) {
      chain.rewind(depth);
    }
    for (let mined = 0; mined <= depth; mined++) {
      await blocks.mine();
    }
    await followHead(service, chain);
    await Promise.all([compared.compareOnce(), compared.compareOnce()]);
  }
};
