import { readFileSync, writeFileSync } from "node:fs";

/** The folders of `src`, highest first. A file imports only from its own folder and from folders on a lower line. */
export const LAYERS: readonly (readonly string[])[] = [
  ["cli", "library"],
  ["app"],
  ["config", "methods", "websocket"],
  ["simulation", "pending", "subscriptions"],
  ["state"],
  ["runs", "heads"],
  ["logs", "feed", "cache", "nodes", "http", "admin"],
  ["verification", "storage"],
  ["threads", "access"],
  ["limits", "telemetry"],
  ["evm"],
  ["core"],
  ["ethereum"],
  ["jsonrpc"],
  ["json"],
];

/** Folders that could be published alone, and what each of them may import: folders, or files of a folder. */
export const LIBRARIES: Readonly<Record<string, readonly string[]>> = {
  ethereum: [],
  evm: ["ethereum", "core/readSet.ts", "core/stateReader.ts"],
};

/** The folders that files of `folder` must not import. */
export const forbiddenFolders = (folder: string): readonly string[] => {
  const line = LAYERS.findIndex((folders) => folders.includes(folder));
  const allowed = LIBRARIES[folder];
  return (allowed === undefined ? LAYERS.slice(0, line + 1) : LAYERS)
    .flat()
    .filter((other) => other !== folder && allowed?.includes(other) !== true);
};

const allowedFiles = (folder: string): readonly string[] =>
  (LIBRARIES[folder] ?? []).filter((allowed) => allowed.includes("/")).map((file) => `!**/${file}`);

const override = (folder: string) => ({
  includes: [`src/${folder}/**`],
  linter: {
    rules: {
      style: {
        noRestrictedImports: {
          level: "error",
          options: {
            patterns: [
              {
                group: [...forbiddenFolders(folder).map((other) => `**/${other}/**`), ...allowedFiles(folder)],
                message: `${folder} must not import this folder: imports go downwards (layers.ts)`,
              },
            ],
          },
        },
      },
    },
  },
});

interface BiomeConfig {
  overrides: readonly { readonly includes: readonly string[] }[];
}

/** Biome's configuration with the import rules of `src` replaced; other overrides stay. */
export const withImportRules = (config: BiomeConfig): BiomeConfig => {
  const others = config.overrides.filter(({ includes }) => !includes.some((path) => path.startsWith("src/")));
  const rules = LAYERS.flat()
    .filter((folder) => forbiddenFolders(folder).length > 0)
    .map(override);
  return { ...config, overrides: [...rules, ...others] };
};

const FILE = new URL("biome.json", import.meta.url);

export const readBiomeConfig = (): BiomeConfig => JSON.parse(readFileSync(FILE, "utf8"));

if (import.meta.main) {
  writeFileSync(FILE, `${JSON.stringify(withImportRules(readBiomeConfig()), null, 2)}\n`);
}
