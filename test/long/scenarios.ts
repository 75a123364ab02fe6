import { runTruth } from "../truth/truthRun.ts";
import { countFaults, formatTruthTable, hasAnswers } from "../truth/truthTable.ts";
import { createForebayProxy } from "../world/proxies/forebayProxy.ts";
import type { LongOptions } from "./support/longOptions.ts";

const WHOLE_SECONDS = 600;
/** `SCENARIO=name` selects one, `SEED=n` other blocks and calls. */
const scenario = process.env.SCENARIO;
const seed = Number(process.env.SEED ?? 1);

export const takesSteps = true;

/** Runs the scenarios of `npm run truth` in front of forebay. A step is a block of each scenario. */
export const long = async ({ seconds = WHOLE_SECONDS, steps }: LongOptions) => {
  const report = await runTruth({ proxy: createForebayProxy(), seconds, steps, seed, scenario });
  console.log(formatTruthTable(report));
  const faults = countFaults(report);
  return {
    claim: "no answer is wrong, and no head, nonce or event goes back, in any scenario",
    ...{ faults, seed, scenarios: report.rows.length },
    examples: report.rows.flatMap(({ score }) => score?.examples.slice(0, 1) ?? []),
    passed: faults === 0 && hasAnswers(report),
  };
};
