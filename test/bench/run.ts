import { existsSync } from "node:fs";
import { parseArgs } from "node:util";

/**
 * `npm run bench -- <name> [--json] [--short]` measures one claim. With `--json`, the last line is the result as JSON.
 * Bench `peers` takes the paths of peers: `--erpc PATH --nodecore PATH --proxyd PATH`.
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: "boolean", default: false },
    short: { type: "boolean", default: false },
    erpc: { type: "string" },
    nodecore: { type: "string" },
    proxyd: { type: "string" },
  },
});
const [name = ""] = positionals;
const file = new URL(`${name}.ts`, import.meta.url);
if (!/^[\w-]+$/.test(name) || !existsSync(file)) {
  console.error(`no bench is called "${name}": npm run bench -- <name> [--json] [--short]`);
  process.exit(2);
}

const { bench } = await import(file.href);
if (typeof bench !== "function") {
  console.error(`${name} is no bench`);
  process.exit(2);
}
const { json, short, ...binaries } = values;
const result = await bench({ short, binaries });
if (!json) {
  console.table(result);
}
console.log(JSON.stringify(result));
