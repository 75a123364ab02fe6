import { existsSync } from "node:fs";
import { parseArgs } from "node:util";
import { withLifespan } from "../support/servers/withLifespan.ts";
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
    "npm run fuzz -- http|ws|node|feed|redis|rlp|proof|witness|simulate|config [--minutes N] [--seed S] [--case N]",
  );
  process.exit(2);
}

console.error(`seed ${seed}`);
const { createTarget } = (await import(file.href)) as { readonly createTarget: CreateTarget };
await withLifespan(async (t) => {
  const report = await fuzz(await createTarget(t), { seed, seconds, only });
  console.log(JSON.stringify({ target: name, seed, seconds, ...report }, undefined, 1));
  process.exitCode = report.findings.length === 0 ? 0 : 1;
});
