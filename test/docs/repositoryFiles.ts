import { readdirSync, readFileSync } from "node:fs";
import { extname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../../", import.meta.url));

const SKIPPED_FOLDERS: ReadonlySet<string> = new Set([".git", "node_modules", "dist"]);
const BINARY: ReadonlySet<string> = new Set([".png", ".tgz", ".log", ".wasm"]);

/** Paths of the text files below a folder, as absolute paths. Folders of packages and of git are not entered. */
const filesBelow = (folder: string): readonly string[] =>
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      return SKIPPED_FOLDERS.has(entry.name) ? [] : filesBelow(path);
    }
    return entry.isFile() && !BINARY.has(extname(entry.name)) ? [path] : [];
  });

/** Paths of all text files of the repository, relative to its root, sorted, with `/` as separator. */
export const repositoryFiles = (): readonly string[] =>
  filesBelow(ROOT)
    .map((path) => relative(ROOT, path).split(sep).join("/"))
    .filter((path) => !SKIPPED_FOLDERS.has(path))
    .toSorted();

/** Reads a file by its path from the root. */
export const readRepositoryFile = (path: string): string => readFileSync(join(ROOT, path), "utf8");

/** Paths of all Markdown documents of the repository. */
export const documentPaths = (): readonly string[] => repositoryFiles().filter((path) => path.endsWith(".md"));
