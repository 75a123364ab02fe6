import { existsSync } from "node:fs";
import { parseArgs } from "node:util";
import { runWithFault } from "../world/planted/runWithFault.ts";

/**
 * `npm run long -- <name> [--seconds N | --steps N]`. Without an option, a run takes minutes. A run of steps is the same for the same
 * seed, as far as no time decides. It exits with 1 if a claim failed. `FAULT=name` plants a fault, and starts the run that must find it.
 */
const USAGE = "npm run long -- <name> [--seconds N | --steps N], where test/long/<name>.ts exists";
/** A run of steps that hangs ends here: ten times what it takes on two busy cores. */
const MAX_STEPS_MS = 900_000;
/** A run with a planted fault ends as soon as it is found. */
const FAULT_SECONDS = 240;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seconds: { type: "string" }, steps: { type: "string" } },
});
const [name = ""] = positionals;
const numberOf = (text: string | undefined): number | undefined => (text === undefined ? undefined : Number(text));
const [seconds, steps] = [numberOf(values.seconds), numberOf(values.steps)];
const file = new URL(`${name}.ts`, import.meta.url);
const isPositive = [seconds, steps].every((value) => value === undefined || value > 0);
if (!/^[\w-]+$/.test(name) || !existsSync(file) || !isPositive) {
  console.error(USAGE);
  process.exit(2);
}

const { long, takesSteps } = await import(file.href);
if (typeof long !== "function" || (steps !== undefined && takesSteps !== true)) {
  console.error(`${name} is no long run${steps === undefined ? "" : " that ends by count"}`);
  process.exit(2);
}
if (steps !== undefined) {
  const end = (): never => {
    console.error(`${name} did not end within ${MAX_STEPS_MS / 1_000} s`);
    process.exit(1);
  };
  setTimeout(end, MAX_STEPS_MS).unref();
}
const { FAULT, PLANTED } = process.env;

const runPlanted = async (fault: string) => {
  const { differences, output } = await runWithFault(fault, seconds ?? FAULT_SECONDS);
  console.log(output);
  return { claim: `the planted fault ${fault} is found`, differences, passed: differences > 0 };
};

const result = FAULT === undefined || PLANTED !== undefined ? await long({ seconds, steps }) : await runPlanted(FAULT);
console.log(JSON.stringify(result));
process.exitCode = result.passed === true ? 0 : 1;
