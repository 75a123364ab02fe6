import { readdirSync, readFileSync } from "node:fs";
import { extname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../../", import.meta.url));

const SKIPPED_FOLDERS: ReadonlySet<string> = new Set([".git", "node_modules", "dist"]);
const BINARY: ReadonlySet<string> = new Set([".png", ".tgz", ".log", ".wasm"]);

/** Paths of all text files of the repository, relative to its root, sorted, with `/` as separator. */
export const repositoryFiles = (): readonly string[] =>
  readdirSync(ROOT, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !BINARY.has(extname(entry.name)))
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)).split(sep).join("/"))
    .filter((path) => !path.split("/").some((part) => SKIPPED_FOLDERS.has(part)))
    .toSorted();

/** Reads a file by its path from the root. */
export const readRepositoryFile = (path: string): string => readFileSync(join(ROOT, path), "utf8");

/** Paths of all Markdown documents of the repository. */
export const documentPaths = (): readonly string[] => repositoryFiles().filter((path) => path.endsWith(".md"));
