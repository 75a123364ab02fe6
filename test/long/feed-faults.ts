import { prepareScenarios, type ScenarioResult, shortScenarios } from "../vectors/runScenarios.ts";
import type { LongOptions } from "./support/longOptions.ts";

/** One block each second, and the start and the end of a run. */
const ROUND_SECONDS = 7;
const MAX_SHOWN = 20;

/** Chooses this number of scenarios, from all kinds. */
const spread = <T>(list: readonly T[], count: number): readonly T[] =>
  list.filter((_, at) => Math.floor(((at + 1) * count) / list.length) > Math.floor((at * count) / list.length));

export const takesSteps = true;

/**
 * Replays the recorded feed in front of the service, with one fault in each run. With a time, only as many scenarios as fit. A step
 * is a scenario. `SCENARIO=<text>` selects scenarios by name.
 */
export const long = async ({ seconds, steps }: LongOptions) => {
  const prepared = await prepareScenarios();
  const wanted = process.env.SCENARIO ?? "";
  const named = prepared.scenarios.filter(({ name }) => name.includes(wanted));
  const ofTime = seconds === undefined || wanted !== "" ? named : shortScenarios(named);
  const list = steps === undefined ? ofTime : spread(named, steps);
  const results: ScenarioResult[] = [];
  const untilMs = performance.now() + (seconds ?? Number.POSITIVE_INFINITY) * 1_000;
  for (const round of prepared.roundsOf(list)) {
    if (results.length > 0 && performance.now() + ROUND_SECONDS * 1_000 > untilMs) {
      break;
    }
    results.push(...(await prepared.run(round)));
  }
  const wrong = results.flatMap(({ name, problems }) => problems.map((problem) => `${name}: ${problem}`));
  return {
    passed: wrong.length === 0,
    scenarios: results.length,
    samples: results.reduce((sum, { samples }) => sum + samples, 0),
    wrong: wrong.slice(0, MAX_SHOWN),
    wrongs: wrong.length,
    modes: [...new Set(results.flatMap(({ modes }) => modes))],
  };
};
