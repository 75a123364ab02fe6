import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "../docs/repositoryFiles.ts";
import type { Lifespan } from "../support/servers/redis.ts";

/**
 * The tree that users update from. After a release, this is its tag.
 * The tests run and read the tree itself. A record of its keys and answers would only have what somebody thought of.
 */
const BASE = "228565d59522ace9bdaf735b0a455b5ceaebe312";
const MAX_BYTES = 64 * 1024 * 1024;

const git = (...args: readonly string[]) => spawnSync("git", ["-C", ROOT, ...args], { maxBuffer: MAX_BYTES });

/** The reason why there is no tree to update from: a shallow clone, or a folder without git. */
export const noBase: string | false =
  git("cat-file", "-e", `${BASE}^{commit}`).status !== 0 &&
  `this clone has no commit ${BASE.slice(0, 12)}: git fetch --unshallow`;

const read = (...args: readonly string[]): Buffer => {
  const { status, stdout, stderr } = git(...args);
  assert.equal(status, 0, stderr.toString());
  return stdout;
};

/** Reads files of the base tree by their paths from the root. Returns their texts, one after another. */
export const readBaseFile = (...paths: readonly string[]): string =>
  read("show", ...paths.map((path) => `${BASE}:${path}`)).toString();

/** Lists the files of the base tree below a folder, with paths from the root. */
export const listBaseFiles = (folder: string): readonly string[] =>
  read("ls-tree", "-r", "--name-only", BASE, `${folder}/`).toString().trim().split("\n");

/**
 * Writes the sources of the base tree to a folder, which ends with the test, and returns the path of its command.
 * It uses the packages of this tree.
 */
export const extractBase = (t: Lifespan): string => {
  const folder = mkdtempSync(join(tmpdir(), "forebay-base-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const archive = read("archive", "--format=tar", BASE, "src", "package.json");
  const { status, stderr } = spawnSync("tar", ["-x", "-C", folder], { input: archive });
  assert.equal(status, 0, stderr.toString());
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  return join(folder, "src/cli/bin.ts");
};

/** New names of metrics and alerts by their old ones, from the table "Renamed" of the changelog. */
export const renamedIn = (changelog: string): ReadonlyMap<string, string> =>
  new Map(
    [...changelog.matchAll(/^\| (?:metric|alert) \| `(\w+)` \| `(\w+)` \|$/gm)].map(([, old = "", name = ""]) => [
      old,
      name,
    ]),
  );

/** Metrics and alerts that have no successor, from the table "Removed" of the changelog. */
export const removedIn = (changelog: string): ReadonlySet<string> =>
  new Set(
    [...changelog.matchAll(/^\| (?:metric|alert) \| `(\w+)` \| (?!`\w+` \|$)[^|]*\|$/gm)].map(([, name = ""]) => name),
  );
