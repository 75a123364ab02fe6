import { writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { proxyOf } from "../world/proxies/proxies.ts";
import { SCENARIOS } from "../world/scenarios/scenarios.ts";
import { runTruth } from "./truthRun.ts";
import { countFaults, formatTruthTable, hasAnswers } from "./truthTable.ts";

const USAGE =
  "npm run truth -- --proxy forebay|nginx|erpc|nodecore|proxyd|URL [--binary PATH] [--minutes N] [--seed S] [--scenario NAME] [--steps N] [--json FILE]";
/** A run of steps that hangs ends here. */
const MAX_STEPS_MS = 600_000;

/**
 * Prints a table, and writes the values to a JSON file. Exits with 1 if an answer was wrong, a value went back, or a scenario had
 * no answer. A step is a block. With steps, each scenario ends by count, and no answer is wrong because it is late. `FAULT=name` plants a fault in forebay.
 */
const { values } = parseArgs({
  options: {
    proxy: { type: "string" },
    binary: { type: "string" },
    minutes: { type: "string", default: "10" },
    seed: { type: "string", default: "1" },
    scenario: { type: "string" },
    steps: { type: "string" },
    json: { type: "string", default: "truth.json" },
  },
});
const [seconds, seed] = [Number(values.minutes) * 60, Number(values.seed)];
const steps = values.steps === undefined ? undefined : Number(values.steps);
const areSteps = steps === undefined || steps > 0;
const isScenario = values.scenario === undefined || SCENARIOS.some(({ name }) => name === values.scenario);
const proxy = proxyOf(values.proxy ?? "", values.binary);
if (proxy === undefined || !isScenario || !areSteps || !(seconds > 0) || !Number.isSafeInteger(seed)) {
  console.error(USAGE);
  console.error(`scenarios: ${SCENARIOS.map(({ name }) => name).join("; ")}`);
  process.exit(2);
}
const nodeUrls = [8_001, 8_002, 8_003].map((port) => `http://127.0.0.1:${port}`);
console.error(proxy.template({ chainId: 1, nodeUrls, feedUrls: [], replicas: 1 }));
if (steps !== undefined) {
  const end = (): never => {
    console.error(`the run did not end within ${MAX_STEPS_MS / 1_000} s`);
    process.exit(1);
  };
  setTimeout(end, MAX_STEPS_MS).unref();
}
const report = await runTruth({ proxy, seconds, steps, seed, scenario: values.scenario });
await writeFile(values.json, `${JSON.stringify(report, undefined, 1)}\n`);
console.log(formatTruthTable(report));
const faults = countFaults(report);
console.log(`${faults} wrong answers and steps back; all values: ${values.json}`);
process.exitCode = faults === 0 && hasAnswers(report) ? 0 : 1;
