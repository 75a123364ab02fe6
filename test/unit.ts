import { spawnSync } from "node:child_process";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { findUnitTests } from "./unitTests.ts";

/** `npm run test:unit [-- FLAGS]` runs the unit tests, with flags of `node --test`. */

/** Most files wait for timers and sockets for part of their time. */
const FILES_PER_CORE = 2;

const { status } = spawnSync(
  process.execPath,
  [
    "--test",
    `--test-concurrency=${FILES_PER_CORE * availableParallelism()}`,
    ...process.argv.slice(2),
    ...findUnitTests(),
  ],
  {
    stdio: "inherit",
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, "../node_modules/.cache/node"), ...process.env },
  },
);
process.exitCode = status ?? 1;
