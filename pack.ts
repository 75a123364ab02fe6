import { execFileSync } from "node:child_process";
import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { argv } from "node:process";
import { fileURLToPath } from "node:url";
import { z } from "zod";

const ROOT = fileURLToPath(new URL(".", import.meta.url));
const DOCUMENTS = ["README.md", "CHANGELOG.md", "LICENSE"];
const MODULES = ["ethereum.wasm", "optimism.wasm", "NOTICE"].map((name) => join("evm/wasm", name));

/** Members of the published manifest. All others are removed, and so is the runtime of the repository. */
const manifest = z.object({
  name: z.string(),
  version: z.string(),
  description: z.string(),
  license: z.string(),
  type: z.literal("module"),
  engines: z.record(z.string(), z.string()),
  dependencies: z.record(z.string(), z.string()),
  optionalDependencies: z.record(z.string(), z.string()),
});

/** Builds the package in `folder`: JavaScript in lib/, a manifest, and the tarball of both. Returns the path of the tarball. */
export const pack = (folder: string): string => {
  rmSync(folder, { recursive: true, force: true });
  const compiler = join(ROOT, "node_modules/.bin/tsc");
  execFileSync(compiler, ["-p", "tsconfig.build.json", "--outDir", join(folder, "lib")], {
    cwd: ROOT,
    stdio: "inherit",
  });
  for (const name of MODULES) {
    cpSync(join(ROOT, "src", name), join(folder, "lib", name));
  }
  const kept = manifest.parse(JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")));
  const optional = Object.entries(kept.optionalDependencies).filter(([name]) => !name.startsWith("node-"));
  const published = {
    ...kept,
    optionalDependencies: Object.fromEntries(optional),
    bin: { forebay: "lib/cli/launch.js" },
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
