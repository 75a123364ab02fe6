import { INVENTED_SCENARIOS } from "../world/invented/inventedScenarios.ts";
import { playInvented } from "../world/invented/playInvented.ts";

const WHOLE_SECONDS = 24;
const AT_ONCE = 5;

/** Some of the origins invent blocks, and the honest ones have faults. No invented block is served in any scenario. */
export const long = async ({ seconds = WHOLE_SECONDS }: { readonly seconds: number | undefined }) => {
  const runs: Awaited<ReturnType<typeof playInvented>>[] = [];
  for (let begun = 0; begun < INVENTED_SCENARIOS.length; begun += AT_ONCE) {
    const scenarios = INVENTED_SCENARIOS.slice(begun, begun + AT_ONCE);
    runs.push(...(await Promise.all(scenarios.map((scenario) => playInvented(scenario, seconds * 1_000)))));
  }
  return { name: "invented-faults", passed: runs.every(({ faults }) => faults.length === 0), runs };
};
