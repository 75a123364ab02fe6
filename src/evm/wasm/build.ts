import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

// Builds the modules from the sources beside this file, and writes their sums. README.md has the requirements.

const KINDS = ["ethereum", "optimism"] as const;
const TARGET = "wasm32-unknown-unknown";
const here = import.meta.dirname;
const targetFolder = process.env.CARGO_TARGET_DIR ?? join(here, "target");
const cargoHome = process.env.CARGO_HOME ?? join(homedir(), ".cargo");

const run = (command: string, args: readonly string[], environment: Readonly<Record<string, string>> = {}): string =>
  execFileSync(command, args, {
    cwd: here,
    env: { ...process.env, ...environment },
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });

/** The module contains no path of this machine, so every machine builds the same bytes. */
const flags = (): string => {
  const sysroot = run("rustc", ["--print", "sysroot"]).trim();
  const paths = [`${cargoHome}=/cargo`, `${here}=/crate`, `${targetFolder}=/target`, `${sysroot}=/rust`];
  return ["-Ctarget-feature=+simd128", ...paths.map((path) => `--remap-path-prefix=${path}`)].join("\x1f");
};

const environment = { CARGO_ENCODED_RUSTFLAGS: flags() };
const sums = KINDS.map((kind) => {
  run("cargo", ["build", "--release", "--locked", "--target", TARGET, "--features", kind], environment);
  const file = `${kind}.wasm`;
  copyFileSync(join(targetFolder, TARGET, "release/forebay_evm.wasm"), join(here, file));
  return `${createHash("sha256")
    .update(readFileSync(join(here, file)))
    .digest("hex")}  ${file}\n`;
});
writeFileSync(join(here, "sha256sums"), sums.join(""));
process.stdout.write(sums.join(""));
