import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Reads the inputs of a target: `corpus/<name>`, one input in each file. */
export const readCorpus = (name: string): readonly Buffer[] => {
  const folder = join(import.meta.dirname, "../corpus", name);
  return readdirSync(folder)
    .toSorted()
    .map((file) => readFileSync(join(folder, file)));
};
