import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { type Crate, formatNotice } from "./notice.ts";

// Builds the modules from the sources beside this file, and writes their sums and the notice of licences. See README.md.

const KINDS = ["ethereum", "optimism"] as const;
const TARGET = "wasm32-unknown-unknown";
const PLAIN_LIST = ["--prefix", "none", "--format", "{p}"];
const here = import.meta.dirname;
const targetFolder = process.env.CARGO_TARGET_DIR ?? join(here, "target");
const cargoHome = process.env.CARGO_HOME ?? join(homedir(), ".cargo");

const run = (command: string, args: readonly string[], environment: Readonly<Record<string, string>> = {}): string =>
  execFileSync(command, args, {
    cwd: here,
    env: { ...process.env, ...environment },
    encoding: "utf8",
    maxBuffer: 1 << 28,
    stdio: ["ignore", "pipe", "inherit"],
  });

/** The module contains no path of this machine, so every machine builds the same bytes. */
const flags = (): string => {
  const sysroot = run("rustc", ["--print", "sysroot"]).trim();
  const paths = [`${cargoHome}=/cargo`, `${here}=/crate`, `${targetFolder}=/target`, `${sysroot}=/rust`];
  return ["-Ctarget-feature=+simd128", ...paths.map((path) => `--remap-path-prefix=${path}`)].join("\x1f");
};

const buildModule = (kind: string, environment: Readonly<Record<string, string>>): string => {
  run("cargo", ["build", "--release", "--locked", "--target", TARGET, "--features", kind], environment);
  const file = join(here, `${kind}.wasm`);
  copyFileSync(join(targetFolder, TARGET, "release/forebay_evm.wasm"), file);
  return createHash("sha256").update(readFileSync(file)).digest("hex");
};

interface Metadata {
  readonly packages: readonly {
    readonly name: string;
    readonly version: string;
    readonly license: string | null;
    readonly manifest_path: string;
  }[];
}

/** Returns the crates that the modules link. Tools and macros of the build are not part of them, but are listed if they are linked too. */
const linkedCrates = (): readonly Crate[] => {
  const tree = KINDS.map((kind) =>
    run("cargo", ["tree", "-e", "normal", "--target", TARGET, "--features", kind, ...PLAIN_LIST]),
  ).join("\n");
  const linked = new Set(tree.split("\n").map((line) => line.split(" ").slice(0, 2).join(" ")));
  const metadata: Metadata = JSON.parse(run("cargo", ["metadata", "--format-version", "1", "--all-features"]));
  return metadata.packages
    .filter(({ name, version }) => name !== "forebay-evm" && linked.has(`${name} v${version}`))
    .map(({ name, version, license, manifest_path }) => ({
      name,
      version,
      license: license ?? "see the text",
      manifest: manifest_path,
    }))
    .sort((one, two) => (`${one.name} ${one.version}` < `${two.name} ${two.version}` ? -1 : 1));
};

const environment = { CARGO_ENCODED_RUSTFLAGS: flags() };
const sums = KINDS.map((kind) => `${buildModule(kind, environment)}  ${kind}.wasm\n`).join("");
writeFileSync(join(here, "sha256sums"), sums);
writeFileSync(join(here, "NOTICE"), formatNotice(linkedCrates()));
process.stdout.write(sums);
