import { createEngines } from "../../../src/evm/createEngines.ts";
import { type CreateTarget, Finding } from "../engine/target.ts";
import { FuzzRun } from "../evm/fuzzRun.ts";

const PROGRAMS_A_CASE = 10;
const SEEDS = 2 ** 32;

/** Random transactions on both engines, as `npm run long -- evm-fuzz` runs them. */
export const createTarget: CreateTarget = async () => {
  const run = new FuzzRun(await createEngines("fast"), await createEngines("reference"));
  return {
    folders: ["evm/"],
    run: async (choices) => {
      const seed = choices.below(SEEDS);
      const end = run.programs + PROGRAMS_A_CASE;
      await run.run(seed, () => run.programs >= end);
      const [difference] = run.differences.slice(-1);
      if (difference !== undefined) {
        throw new Finding("the engines differ", difference);
      }
    },
  };
};
