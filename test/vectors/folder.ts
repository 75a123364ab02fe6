import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

/** Where the public vectors are: `VECTORS=<folder>` names another folder of the same shape. */
export const vectorsFolder = resolve(process.env.VECTORS ?? join(import.meta.dirname, "../../../shared/vectors"));

export const readVector = (path: string): string => {
  const file = join(vectorsFolder, path);
  if (!existsSync(file)) throw new Error(`no vectors: ${file} is missing (VECTORS=<folder> names another place)`);
  return readFileSync(file, "utf8");
};

export const readJson = (path: string): unknown => JSON.parse(readVector(path));
/** One JSON value a line. */
export const readJsonLines = (path: string): unknown[] =>
  readVector(path)
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
