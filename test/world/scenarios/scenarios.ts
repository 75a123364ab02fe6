import { FEED_SCENARIOS } from "./feedScenarios.ts";
import { LAST_SCENARIOS, LIE_SCENARIOS } from "./lieScenarios.ts";
import { NODE_SCENARIOS } from "./nodeScenarios.ts";
import { PROCESS_SCENARIOS } from "./processScenarios.ts";
import { REORG_SCENARIOS } from "./reorgScenarios.ts";
import type { Scenario } from "./scenario.ts";

/** In the order in which they run. */
export const SCENARIOS: readonly Scenario[] = [
  ...NODE_SCENARIOS,
  ...LIE_SCENARIOS,
  ...REORG_SCENARIOS,
  ...PROCESS_SCENARIOS,
  ...FEED_SCENARIOS,
  ...LAST_SCENARIOS,
];
