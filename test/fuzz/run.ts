import { existsSync } from "node:fs";
import { parseArgs } from "node:util";
import { Coverage } from "./engine/coverage.ts";
import { fuzz } from "./engine/fuzz.ts";
import type { CreateTarget } from "./engine/target.ts";

/** `npm run fuzz -- <target> [--minutes N | --seconds N] [--seed S] [--case N]`. It exits with 1 after a finding. */
const SEEDS = 2 ** 31;
const DEFAULT_MINUTES = 15;
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    minutes: { type: "string" },
    seconds: { type: "string" },
    seed: { type: "string" },
    case: { type: "string" },
  },
});
const [name = ""] = positionals;
const seconds = Number(values.seconds ?? Number(values.minutes ?? DEFAULT_MINUTES) * 60);
const seed = Number(values.seed ?? Math.floor(Math.random() * SEEDS));
const only = values.case === undefined ? undefined : Number(values.case);
const file = new URL(`targets/${name}.ts`, import.meta.url);
if (!/^\w+$/.test(name) || !existsSync(file) || !(seconds > 0) || !Number.isSafeInteger(seed)) {
  console.error(
    "npm run fuzz -- http|ws|node|feed|redis|rlp|proof|witness|simulate|config|evm [--minutes N] [--seed S] [--case N]",
  );
  process.exit(2);
}

console.error(`seed ${seed}`);
const coverage = await Coverage.start();
const { createTarget } = (await import(file.href)) as { readonly createTarget: CreateTarget };
const ends: (() => unknown)[] = [];
try {
  const target = await createTarget({ after: (end) => ends.unshift(end) });
  const report = await fuzz(target, { seed, seconds, only });
  const called = await coverage.take(target.folders);
  console.log(JSON.stringify({ target: name, seed, seconds, ...report, coverage: called }, undefined, 1));
  process.exitCode = report.findings.length === 0 ? 0 : 1;
} finally {
  for (const end of ends) {
    await end();
  }
}
