import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { vectorFolder } from "./vectorFolder.ts";

const MAX_BYTES = 256 * 1024 * 1024;

/** The text of a compressed vector. Needs the `xz` command. */
export const xzText = (path: string): string => {
  const file = join(vectorFolder, path);
  if (!existsSync(file)) {
    throw new Error(`no vectors: ${file} is missing (VECTORS=<folder> names another place)`);
  }
  return execFileSync("xz", ["-dc", file], { maxBuffer: MAX_BYTES, encoding: "utf8" });
};
