import { createInterface } from "node:readline/promises";
import { createProviderChains } from "../config/providerChains.ts";
import type { Arguments } from "../config/readConfig.ts";

/** The choices that a first configuration needs. An empty list or text is a choice that was not made. */
export interface InitOptions {
  readonly providers: readonly string[];
  readonly chains: readonly string[];
  readonly urls: readonly string[];
  readonly redis: string;
}

const listOf = (value: Arguments["values"][string]): readonly string[] => (Array.isArray(value) ? value : []);

/** Reads the choices that flags make. */
export const readInitOptions = ({ values }: Arguments): InitOptions => ({
  providers: listOf(values.provider),
  chains: listOf(values.chain),
  urls: listOf(values.upstream),
  redis: typeof values.redis === "string" ? values.redis : "",
});

const words = (text: string): readonly string[] => text.split(/[\s,]+/).filter((word) => word !== "");

/** Asks for choices that no flag made, if somebody sits at a terminal. The questions go to stderr, the file to stdout. */
export const askMissing = async (options: InitOptions): Promise<InitOptions> => {
  if (options.urls.length > 0 || options.providers.length > 0 || !process.stdin.isTTY) {
    return options;
  }
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const urls = words(await terminal.question("URLs of your nodes (empty for a provider): "));
    const providers =
      urls.length > 0 ? [] : words(await terminal.question("Provider and key, for example alchemy:KEY: "));
    const chains = urls.length > 0 ? [] : words(await terminal.question("Chains, for example op base unichain: "));
    const redis = options.redis || (await terminal.question("Redis URL (empty for none): ")).trim();
    return { providers, chains, urls, redis };
  } finally {
    terminal.close();
  }
};

/** The name of the environment variable that holds the key of a provider. */
const variableOf = (provider: string): string => `${provider.toUpperCase()}_KEY`;

/** Chains with `${NAME_KEY}` in place of each key, so that the file contains no secret. */
const chainLines = ({ providers, chains, urls }: InitOptions): readonly string[] => {
  if (providers.length === 0) {
    const nodes = urls.length > 0 ? urls : ["http://localhost:8545"];
    return [
      "  - name: chain",
      "    # chainId: 1                # a node of another chain is never used",
      "    nodes:",
      ...nodes.map((url) => `      - { url: ${JSON.stringify(url)} }   # wsUrl: new heads are pushed`),
    ];
  }
  const named = providers.map((text) => text.split(":", 1)[0] ?? "");
  const withoutKeys = named.map((name, index) => (providers[index]?.includes(":") ? `${name}:KEY-OF-${name}` : name));
  const fill = (url: string) =>
    named.reduce((text, name) => text.replace(`KEY-OF-${name}`, `\${${variableOf(name)}}`), url);
  return createProviderChains(withoutKeys, chains).flatMap(({ name, chainId, nodes }) => [
    `  - name: ${name}`,
    `    chainId: ${chainId}`,
    "    nodes:",
    ...nodes.map(
      (node) =>
        `      - { name: ${node.name}, url: "${fill(node.url)}"${node.wsUrl === undefined ? "" : `, wsUrl: "${fill(node.wsUrl)}"`} }`,
    ),
  ]);
};

/** Formats a commented configuration file. Throws an error that names a flag. */
export const formatInitialConfig = (options: InitOptions): string =>
  [
    "# Check it: forebay check --config forebay.yaml. Start it: forebay --config forebay.yaml",
    "# All options: docs/configuration.md. ${NAME} is replaced by an environment variable.",
    "chains:",
    ...chainLines(options),
    "    # pending: { feeds: [wss://...] }   # the sequencer's feed, if the chain has one",
    ...(options.redis === ""
      ? ["# cache: { redis: redis://localhost:6379 }   # shared by replicas, survives restarts"]
      : ["cache:", `  redis: ${JSON.stringify(options.redis)}`]),
    "server:",
    "  host: 127.0.0.1               # 0.0.0.0 for all addresses",
    "  port: 8545",
    "  opsPort: 9545                 # /metrics, /healthz, /readyz",
    "# access:                       # without keys, everybody may send requests",
    "#   keys: [{ name: wallet, sha256: ... }]   # printf %s THE-KEY | sha256sum",
  ].join("\n");
