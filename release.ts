import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { argv, env } from "node:process";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { pack } from "./pack.ts";

const ROOT = fileURLToPath(new URL(".", import.meta.url));
const PLATFORMS = "linux/amd64,linux/arm64";
/** The runtime of the repository. The published package does not have it. */
const OWN_RUNTIME = "node-linux-";

/** A part of a release: the files that it wrote, or why it was not made. */
export type ReleasePart =
  | { readonly name: string; readonly outcome: "made"; readonly files: readonly string[] }
  | { readonly name: string; readonly outcome: "skipped" | "failed"; readonly reason: string };

/** The programs that not every machine has. */
export interface ReleaseTools {
  readonly docker: string;
  readonly helm: string;
}

/** Exit codes: 0 if all parts are made, 1 if one failed, 2 if none failed and a tool is missing. */
export const exitCodeOf = (parts: readonly ReleasePart[]): 0 | 1 | 2 => {
  if (parts.some(({ outcome }) => outcome === "failed")) {
    return 1;
  }
  return parts.some(({ outcome }) => outcome === "skipped") ? 2 : 0;
};

const firstLine = (text: string): string => text.trim().split("\n", 1)[0] ?? "";

/** Returns why a program cannot be used. Undefined if it can. */
const findLack = (program: string, ...checks: readonly (readonly string[])[]): string | undefined => {
  for (const args of checks) {
    const { error, status, stderr } = spawnSync(program, args, { encoding: "utf8" });
    if (error !== undefined) {
      return `${program} is not installed`;
    }
    if (status !== 0) {
      return `${program} ${args.join(" ")} fails: ${firstLine(stderr)}`;
    }
  }
  return undefined;
};

/** Makes a part. An error of a program is the reason of its failure. */
const make = (name: string, lack: string | undefined, build: () => readonly string[]): ReleasePart => {
  if (lack !== undefined) {
    return { name, outcome: "skipped", reason: lack };
  }
  try {
    return { name, outcome: "made", files: build() };
  } catch (error) {
    return { name, outcome: "failed", reason: error instanceof Error ? error.message : String(error) };
  }
};

const manifest = z.object({ name: z.string(), version: z.string() });

const readManifest = () => manifest.parse(JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")));

const component = z.looseObject({
  "bom-ref": z.string(),
  name: z.string(),
  properties: z.array(z.strictObject({ name: z.string(), value: z.string() })),
});

const sbom = z.looseObject({
  metadata: z.looseObject({ component: z.looseObject({ name: z.string(), "bom-ref": z.string() }) }),
  components: z.array(component),
  dependencies: z.array(z.looseObject({ ref: z.string(), dependsOn: z.array(z.string()).default([]) })),
});

/** Whether the published package installs a package of the lock file. */
const isInstalled = ({ name, properties }: z.infer<typeof component>): boolean =>
  !name.startsWith(OWN_RUNTIME) && !properties.some((each) => each.name === "cdx:npm:package:development");

/** Returns the CycloneDX text of what the package installs, by the lock file. */
const formatSbom = (): string => {
  // `--omit=dev` would also leave out packages that a development tool needs too.
  const args = ["sbom", "--sbom-format=cyclonedx", "--sbom-type=application", "--package-lock-only"];
  const { metadata, ...all } = sbom.parse(JSON.parse(execFileSync("npm", args, { cwd: ROOT, encoding: "utf8" })));
  const components = all.components.filter(isInstalled);
  const refs = new Set([metadata.component["bom-ref"], ...components.map((each) => each["bom-ref"])]);
  const dependencies = all.dependencies
    .filter(({ ref }) => refs.has(ref))
    .map((each) => ({ ...each, dependsOn: each.dependsOn.filter((ref) => refs.has(ref)) }));
  // npm names it after the folder.
  metadata.component.name = readManifest().name;
  return `${JSON.stringify({ ...all, metadata, components, dependencies }, null, 2)}\n`;
};

const writeSbom = (folder: string): readonly string[] => {
  const { name, version } = readManifest();
  const file = join(folder, `${name}-${version}.cdx.json`);
  writeFileSync(file, formatSbom());
  return [file];
};

/** Builds the image for both kinds of processors, with an SBOM in it, as an OCI archive. */
export const makeImage = (folder: string, { docker }: Pick<ReleaseTools, "docker">): ReleasePart =>
  make("image", findLack(docker, ["version"], ["buildx", "version"]), () => {
    const { name, version } = readManifest();
    const file = join(folder, `${name}-${version}.oci.tar`);
    const args = ["buildx", "build", `--platform=${PLATFORMS}`, "--sbom=true", "--provenance=mode=max"];
    execFileSync(docker, [...args, `--output=type=oci,dest=${file}`, "."], {
      cwd: ROOT,
      stdio: ["ignore", 2, 2],
    });
    return [file];
  });

/** Packs the chart. The archive has the name of the package's tarball. */
export const makeChart = (folder: string, { helm }: Pick<ReleaseTools, "helm">): ReleasePart =>
  make("chart", findLack(helm, ["version"]), () => {
    const { name, version } = readManifest();
    execFileSync(helm, ["package", "helm", "--destination", folder], { cwd: ROOT, stdio: ["ignore", 2, 2] });
    return [join(folder, `${name}-${version}.tgz`)];
  });

/** Lets npm check the package as it does before it publishes it. */
const checkPublication = (folder: string): readonly string[] => {
  // It asks the registry for the version. Without a network, it goes on without the answer.
  const args = ["publish", "--dry-run", "--fetch-retries=0", "--loglevel=error"];
  execFileSync("npm", args, { cwd: folder, stdio: ["ignore", 2, 2] });
  return [];
};

/** Writes the SHA-256 of each file that a part has written. */
const writeSums = (folder: string, files: readonly string[]): readonly string[] => {
  const sumOf = (file: string) => createHash("sha256").update(readFileSync(file)).digest("hex");
  const sums = join(folder, "SHA256SUMS");
  writeFileSync(sums, files.map((file) => `${sumOf(file)}  ${relative(folder, file)}\n`).join(""));
  return [sums];
};

/** Makes all parts of a release in `folder`, and publishes nothing. */
export const makeRelease = (folder: string, tools: ReleaseTools): readonly ReleasePart[] => {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const packed = join(folder, "package");
  const parts = [
    make("package", undefined, () => [pack(packed)]),
    make("SBOM", undefined, () => writeSbom(folder)),
    make("npm publish --dry-run", undefined, () => checkPublication(packed)),
    makeImage(folder, tools),
    makeChart(join(folder, "chart"), tools),
  ];
  const files = parts.flatMap((part) => (part.outcome === "made" ? part.files : []));
  return [...parts, make("checksums", undefined, () => writeSums(folder, files))];
};

const formatPart = (part: ReleasePart): string => {
  const { name, outcome } = part;
  const text = part.outcome === "made" ? part.files.join(" ") : part.reason;
  return `${outcome.padEnd(7)} ${name}${text === "" ? "" : `: ${text}`}\n`;
};

if (import.meta.main) {
  const tools = { docker: env.DOCKER ?? "docker", helm: env.HELM ?? "helm" };
  const parts = makeRelease(resolve(argv[2] ?? join(ROOT, "dist/release")), tools);
  process.stdout.write(parts.map(formatPart).join(""));
  process.exitCode = exitCodeOf(parts);
}
