import { spawnSync } from "node:child_process";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { listSuite } from "./suites.ts";

/** `node test/run.ts fast|slow|all|unit [FLAGS]` runs the test files of a suite, with flags of `node --test`. */

/** More would disturb tests of services, which have deadlines of their own. */
const FILES_PER_CORE: Readonly<Record<string, number>> = { fast: 1, unit: 2, slow: 1, all: 1 };

const [suite = "", ...flags] = process.argv.slice(2);
const files = listSuite(suite);
const { status } = spawnSync(
  process.execPath,
  [
    "--test",
    `--test-concurrency=${Math.ceil((FILES_PER_CORE[suite] ?? 1) * availableParallelism())}`,
    ...flags,
    ...files,
  ],
  {
    stdio: "inherit",
    // Types are stripped and code is compiled once, not in each file's process.
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, "../node_modules/.cache/node"), ...process.env },
  },
);
process.exitCode = status ?? 1;
