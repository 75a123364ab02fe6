import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { listSuite } from "./suites.ts";

/** `node test/run.ts fast|slow|all|unit [FLAGS]` runs the test files of a suite, with flags of `node --test`. */

/** More would disturb tests of services, which have deadlines of their own. */
const PROCESSES_PER_CORE: Readonly<Record<string, number>> = { fast: 1, unit: 2, slow: 1, all: 1 };
/** Files of one folder share a process: it takes longer to start one, and to load the service, than most files run. */
const FILES_PER_PROCESS = 8;
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

const [suite = "", ...flags] = process.argv.slice(2);
const target = mkdtempSync(join(tmpdir(), "forebay-tests-"));
try {
  const paths = groupFiles(listSuite(suite)).map((files) => writeGroup(target, files));
  const concurrency = Math.ceil((PROCESSES_PER_CORE[suite] ?? 1) * availableParallelism());
  const { status } = spawnSync(process.execPath, ["--test", `--test-concurrency=${concurrency}`, ...flags, ...paths], {
    stdio: "inherit",
    // Types are stripped and code is compiled once, not in each process.
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, "../node_modules/.cache/node"), ...process.env },
  });
  process.exitCode = status ?? 1;
} finally {
  rmSync(target, { recursive: true });
}
