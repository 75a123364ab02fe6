import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, constants, getPriority, setPriority, tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { listSuite } from "./suites.ts";

/** `node test/run.ts fast|slow|all|unit [FLAGS]` runs the test files of a suite, with flags of `node --test`. */

/** Tests of services wait half of their time: for nodes, blocks and deadlines. More would disturb these. */
const PROCESSES_PER_CORE = 1.5;
/** Unit tests alone. */
const UNIT_PROCESSES_PER_CORE = 2;
/** Unit tests beside the others. */
const BESIDE_PROCESSES_PER_CORE = 0.5;
/** So much less than the others, so that unit tests use only what these leave. */
const BESIDE_NICE = 10;
/** A test that waits for what never happens fails after this time. The longest ones take a minute on two cores. */
const MAX_TEST_MS = 300_000;
/** Files of one folder share a process: it takes longer to start one, and to load the service, than most files run. */
const FILES_PER_PROCESS = 12;
/** A file that measures or changes its process has one of its own. */
const NEEDS_OWN_PROCESS =
  /^mock\.\w+\(|memoryUsage|MAX_STALL_MS|"node:(?:v8|async_hooks|inspector)|globalThis\.\w+ = /m;
/** Hooks of a file would run for the other files of its process. They belong to one test that has the tests of the file. */
const HAS_HOOKS = /^(?:before|after|beforeEach|afterEach)\(/m;

/** Returns the files that share a process, in the order of their names. */
const groupFiles = (files: readonly string[]): readonly (readonly string[])[] => {
  const groups: string[][] = [];
  const open = new Map<string, string[]>();
  for (const file of files) {
    const folder = dirname(file);
    const group = open.get(folder);
    if (NEEDS_OWN_PROCESS.test(readFileSync(file, "utf8"))) {
      groups.push([file]);
    } else if (group && group.length < FILES_PER_PROCESS) {
      group.push(file);
    } else {
      const created = [file];
      groups.push(created);
      open.set(folder, created);
    }
  }
  return groups;
};

/** Writes a module that imports the files of a group, and returns its path. A group of one file is that file. */
const writeGroup = (target: string, [first = "", ...others]: readonly string[]): string => {
  if (others.length === 0) {
    return first;
  }
  const name = relative(import.meta.dirname, first)
    .replaceAll("/", "-")
    .replace(".test.ts", "");
  const path = join(target, `${name}-and-${others.length}-more.test.mjs`);
  const lines = [first, ...others].map((file) => {
    const url = JSON.stringify(pathToFileURL(file).href);
    const title = JSON.stringify(relative(import.meta.dirname, file));
    return HAS_HOOKS.test(readFileSync(file, "utf8"))
      ? `test(${title}, async () => { await import(${url}); });\n`
      : `import ${url};\n`;
  });
  writeFileSync(path, `import { test } from "node:test";\n${lines.join("")}`);
  return path;
};

interface Lane {
  readonly files: readonly string[];
  readonly processesPerCore: number;
  readonly isBeside: boolean;
}

/** Returns the files of a suite that run one after another, and those that run beside them. */
const lanesOf = (suite: string): readonly Lane[] => {
  const units = new Set(listSuite("unit"));
  const files = listSuite(suite);
  const unit = files.filter((file) => units.has(file));
  const others = files.filter((file) => !units.has(file));
  if (others.length === 0) {
    return [{ files: unit, processesPerCore: UNIT_PROCESSES_PER_CORE, isBeside: false }];
  }
  const beside = { files: unit, processesPerCore: BESIDE_PROCESSES_PER_CORE, isBeside: true };
  return [
    { files: others, processesPerCore: PROCESSES_PER_CORE, isBeside: false },
    ...(unit.length > 0 ? [beside] : []),
  ];
};

interface LaneResult {
  readonly isPassed: boolean;
  /** What was not printed yet. */
  readonly output: string;
}

/** Runs the files of a lane. The output of one beside another is printed in one piece: when it ends, and after all others if a test failed. */
const runLane = async (
  { files, processesPerCore, isBeside }: Lane,
  flags: readonly string[],
  target: string,
): Promise<LaneResult> => {
  const paths = groupFiles(files).map((group) => writeGroup(target, group));
  const concurrency = Math.ceil(processesPerCore * availableParallelism());
  const child = spawn(
    process.execPath,
    ["--test", `--test-concurrency=${concurrency}`, `--test-timeout=${MAX_TEST_MS}`, ...flags, ...paths],
    {
      stdio: ["inherit", isBeside ? "pipe" : "inherit", "inherit"],
      // Types are stripped and code is compiled once, not in each process.
      env: { NODE_COMPILE_CACHE: join(import.meta.dirname, "../node_modules/.cache/node"), ...process.env },
    },
  );
  if (isBeside && child.pid !== undefined) {
    setPriority(child.pid, Math.min(getPriority() + BESIDE_NICE, constants.priority.PRIORITY_LOW));
  }
  let output = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  const [status] = await once(child, "close");
  const isPassed = status === 0;
  if (isPassed) {
    process.stdout.write(output);
    output = "";
  }
  return { isPassed, output };
};

const [suite = "", ...flags] = process.argv.slice(2);
const target = mkdtempSync(join(tmpdir(), "forebay-tests-"));
try {
  const results = await Promise.all(lanesOf(suite).map((lane) => runLane(lane, flags, target)));
  process.stdout.write(results.map(({ output }) => output).join(""));
  process.exitCode = results.every(({ isPassed }) => isPassed) ? 0 : 1;
} finally {
  rmSync(target, { recursive: true });
}
