import { execFileSync } from "node:child_process";
import { cpSync, existsSync, globSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { argv } from "node:process";
import { fileURLToPath } from "node:url";
import { z } from "zod";

const ROOT = fileURLToPath(new URL(".", import.meta.url));
const DOCUMENTS = ["README.md", "CHANGELOG.md", "LICENSE"];
/** What is read at run time, beside the JavaScript that is compiled. */
const ASSETS = [
  ...["ethereum.wasm", "optimism.wasm", "NOTICE"].map((name) => join("evm/wasm", name)),
  ...["page.html", "page.css", "page.js"].map((name) => join("admin/page", name)),
];

/** Members of the published manifest. All others are removed, and so is the runtime of the repository. */
const manifest = z.object({
  name: z.string(),
  version: z.string(),
  description: z.string(),
  license: z.string(),
  type: z.literal("module"),
  engines: z.record(z.string(), z.string()),
  exports: z.record(z.string(), z.string()),
  dependencies: z.record(z.string(), z.string()),
  optionalDependencies: z.record(z.string(), z.string()),
  peerDependencies: z.record(z.string(), z.string()),
  peerDependenciesMeta: z.record(z.string(), z.strictObject({ optional: z.boolean() })),
});

/** Returns what programs import from the package, for what they import from the repository. */
const publishedExports = (exports: Readonly<Record<string, string>>) =>
  Object.fromEntries(
    Object.entries(exports).map(([path, file]) => {
      const built = file.replace("./src/", "./lib/").replace(/\.ts$/, "");
      return [path, built === file ? file : { types: `${built}.d.ts`, default: `${built}.js` }];
    }),
  );

/** Returns the declarations that those at `paths` import, and these. */
const withImports = (paths: readonly string[]): ReadonlySet<string> => {
  const found = new Set(paths);
  for (const path of found) {
    for (const [, target = ""] of readFileSync(path, "utf8").matchAll(/(?:from|import\() ?"(\.[^"]+)\.ts"/g)) {
      found.add(`${resolve(dirname(path), target)}.d.ts`);
    }
  }
  return found;
};

/** Removes the declarations that programs cannot reach. */
const removeUnused = (folder: string, exports: ReturnType<typeof publishedExports>): void => {
  const entries = Object.values(exports).flatMap((entry) => (typeof entry === "string" ? [] : [entry.types]));
  const used = withImports(entries.map((file) => resolve(folder, file)));
  for (const path of globSync("lib/**/*.d.ts", { cwd: folder }).map((file) => resolve(folder, file))) {
    if (!used.has(path)) {
      rmSync(path);
    }
  }
};

/** Builds the package in `folder`: JavaScript in lib/, a manifest, and the tarball of both. Returns the path of the tarball. */
export const pack = (folder: string): string => {
  rmSync(folder, { recursive: true, force: true });
  const compiler = join(ROOT, "node_modules/.bin/tsc");
  execFileSync(compiler, ["-p", "tsconfig.build.json", "--outDir", join(folder, "lib")], {
    cwd: ROOT,
    stdio: "inherit",
  });
  for (const name of ASSETS) {
    cpSync(join(ROOT, "src", name), join(folder, "lib", name));
  }
  const kept = manifest.parse(JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")));
  const exports = publishedExports(kept.exports);
  removeUnused(folder, exports);
  const optional = Object.entries(kept.optionalDependencies).filter(([name]) => !name.startsWith("node-"));
  const published = {
    ...kept,
    optionalDependencies: Object.fromEntries(optional),
    bin: { forebay: "lib/cli/launch.js" },
    exports,
    files: ["lib"],
  };
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(published, null, 2)}\n`);
  for (const name of DOCUMENTS) {
    if (existsSync(join(ROOT, name))) {
      cpSync(join(ROOT, name), join(folder, name));
    }
  }
  execFileSync("npm", ["pack", "--silent", "--pack-destination", folder], { cwd: folder });
  return join(folder, `${kept.name}-${kept.version}.tgz`);
};

if (import.meta.main) {
  process.stdout.write(`${pack(resolve(argv[2] ?? join(ROOT, "dist")))}\n`);
}
