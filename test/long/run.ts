import { existsSync } from "node:fs";
import { parseArgs } from "node:util";

/** `npm run long -- <name> [--seconds N]` runs for minutes. It exits with 1 if a claim failed. */
const { values, positionals } = parseArgs({ allowPositionals: true, options: { seconds: { type: "string" } } });
const [name = ""] = positionals;
const seconds = values.seconds === undefined ? undefined : Number(values.seconds);
const file = new URL(`${name}.ts`, import.meta.url);
if (!/^[\w-]+$/.test(name) || !existsSync(file) || (seconds !== undefined && !(seconds > 0))) {
  console.error("npm run long -- <name> [--seconds N], where test/long/<name>.ts exists");
  process.exit(2);
}

const { long } = await import(file.href);
if (typeof long !== "function") {
  console.error(`${name} is no long run`);
  process.exit(2);
}
const result = await long({ seconds });
console.log(JSON.stringify(result));
process.exitCode = result.passed === true ? 0 : 1;
