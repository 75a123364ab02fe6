import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { vectorFolder } from "./vectorFolder.ts";

const MAX_BYTES = 256 * 1024 * 1024;

/** The text of a compressed vector. */
export const xzText = (path: string): string =>
  execFileSync("xz", ["-dc", join(vectorFolder, path)], { maxBuffer: MAX_BYTES }).toString();
