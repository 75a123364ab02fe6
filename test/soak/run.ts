import { parseArgs } from "node:util";
import { runSoak } from "./soakRun.ts";

/**
 * `npm run soak -- --minutes N --seed S`. It exits with 1 if an answer was wrong.
 * `--scenarios a,b` selects scenarios by name. `FAULT=name` plants a fault in forebay.
 */
const SEEDS = 2 ** 31;
const { values } = parseArgs({
  options: {
    minutes: { type: "string" },
    seconds: { type: "string" },
    seed: { type: "string" },
    scenarios: { type: "string" },
  },
});
const seconds = values.seconds === undefined ? Number(values.minutes ?? 30) * 60 : Number(values.seconds);
const seed = values.seed === undefined ? Math.floor(Math.random() * SEEDS) : Number(values.seed);
if (!(seconds > 0) || !Number.isSafeInteger(seed)) {
  console.error("npm run soak -- [--minutes N | --seconds N] [--seed S] [--scenarios NAMES]");
  process.exit(2);
}
console.error(`seed ${seed}`);
const result = await runSoak({ seconds, seed, planted: process.env.FAULT, scenarios: values.scenarios?.split(",") });
console.log(JSON.stringify(result, undefined, 1));
process.exitCode = result.passed ? 0 : 1;
