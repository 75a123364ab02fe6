import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

const IMPORT = /(?:\bfrom |\bimport |\bimport\(|new URL\()"(\.{1,2}\/[^"]+\.ts)"/g;
/** Tests that take long: a whole forebay each, and log queries under the limits of many providers. */
const SLOW = ["service/", "logs/dialects.test.ts"];
/** A module that imports this one starts other programs. */
const STARTS_PROGRAMS = '"node:child_process"';

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

/**
 * Lists the unit tests: test files that are not slow, start no other program (anvil, Redis, Prometheus, Chromium), and import no
 * module that does. Returns absolute paths, sorted.
 */
export const findUnitTests = (): readonly string[] =>
  readdirSync(import.meta.dirname, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".test.ts") && !SLOW.some((slow) => path.startsWith(slow)))
    .map((path) => join(import.meta.dirname, path))
    .filter((path) => !startsPrograms(path))
    .toSorted();
