import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

const IMPORT = /(?:\bfrom |\bimport |\bimport\(|new URL\()"(\.{1,2}\/[^"]+\.ts)"/g;
/** A module that imports this one starts other programs. */
const STARTS_PROGRAMS = '"node:child_process"';
/** A whole forebay in each test. */
const SERVICE_FOLDER = "service/";

const importsOf = (path: string, text: string): readonly string[] =>
  [...text.matchAll(IMPORT)]
    .map(([, target = ""]) => resolve(dirname(path), target))
    .filter((file) => existsSync(file));

const startsPrograms = (path: string): boolean => {
  const reached = new Set([path]);
  for (const file of reached) {
    const text = readFileSync(file, "utf8");
    if (text.includes(STARTS_PROGRAMS)) {
      return true;
    }
    for (const target of importsOf(file, text)) {
      reached.add(target);
    }
  }
  return false;
};

const isSlow = (path: string): boolean => path.endsWith(".slow.test.ts");

/** Whether a test file belongs to a suite, by its path in this folder. */
const SUITES: Readonly<Record<string, (path: string) => boolean>> = {
  all: () => true,
  slow: isSlow,
  fast: (path) => !isSlow(path),
  /** Fast tests that start no other program (anvil, Redis, Prometheus, Chromium) and no service, and import no module that does. */
  unit: (path) => !isSlow(path) && !path.startsWith(SERVICE_FOLDER) && !startsPrograms(join(import.meta.dirname, path)),
};

/** Lists the test files of a suite: `all`, `slow` (named `*.slow.test.ts`), `fast` (the others) or `unit`. Returns absolute paths, sorted. */
export const listSuite = (suite: string): readonly string[] => {
  const has = SUITES[suite];
  if (has === undefined) {
    throw new Error(`no suite "${suite}": ${Object.keys(SUITES).join(", ")}`);
  }
  return readdirSync(import.meta.dirname, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".test.ts") && has(path))
    .map((path) => join(import.meta.dirname, path))
    .toSorted();
};
