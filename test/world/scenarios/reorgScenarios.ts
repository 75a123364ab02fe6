import { makeLate } from "./nodeScenarios.ts";
import type { Scenario } from "./scenario.ts";

const MAX_REORG = 20;
/** All nodes have the new branch at the same time. */
const MAX_QUICK_REORG = 8;
const REORG_MS = 3_500;

/** Blocks that are replaced. */
export const REORG_SCENARIOS: readonly Scenario[] = [
  {
    name: "reorganisations",
    promise: "reorganisations",
    begin: (world) => {
      const { chain, change, random, repeat } = world;
      makeLate(world);
      repeat(REORG_MS, async () => {
        const depth = 1 + random(MAX_REORG);
        const endFault = chain.lagBound.beginFault();
        await change(() => chain.reorg(depth, depth + random(2)));
        endFault();
      });
    },
  },
  {
    name: "reorganisations at once",
    promise: "subscriptions",
    finds: ["staleHit", "orphanedLog"],
    isPrompt: true,
    begin: ({ chain, change, random, repeat }) => {
      repeat(REORG_MS, () => {
        const depth = random(2) === 0 ? 1 : 1 + random(MAX_QUICK_REORG);
        return change(() => chain.reorg(depth, depth === 1 ? 1 : depth + random(2)));
      });
    },
  },
];
