import { CHAIN_IDS, type ChainName, PROVIDERS } from "./providers.ts";

/** A chain of a configuration, before its defaults are filled in. */
export interface ProviderChain {
  readonly name: string;
  readonly chainId: number;
  readonly nodes: readonly { readonly name: string; readonly url: string; readonly wsUrl?: string }[];
}

const isChainName = (name: string): name is ChainName => Object.hasOwn(CHAIN_IDS, name);

const list = (names: Iterable<string>): string => [...names].join(", ");

const parseChains = (texts: readonly string[]): readonly ChainName[] =>
  texts
    .flatMap((text) => text.split(","))
    .map((name) => {
      if (!isChainName(name)) {
        throw new Error(`--chain: "${name}" is not known; chains: ${list(Object.keys(CHAIN_IDS))}`);
      }
      return name;
    });

/** Parses `NAME:KEY`, or the name alone of a provider whose endpoints are public. */
const parseProvider = (text: string) => {
  const [name = "", ...rest] = text.split(":");
  const key = rest.join(":");
  const provider = Object.hasOwn(PROVIDERS, name) ? PROVIDERS[name] : undefined;
  if (provider === undefined) {
    throw new Error(`--provider: "${name}" is not known; providers: ${list(Object.keys(PROVIDERS))}`);
  }
  if (key === "" && provider.isPublic !== true) {
    throw new Error(`--provider: ${name} needs a key: ${name}:KEY`);
  }
  return { name, key, provider };
};

/**
 * Returns the chains of `--provider` and `--chain`: each chain at each provider that has it, in the order of the flags.
 * Throws an error that names the flag. No error contains a key.
 */
export const createProviderChains = (
  providers: readonly string[],
  chains: readonly string[],
): readonly ProviderChain[] => {
  const parsed = providers.map(parseProvider);
  const names = parseChains(chains);
  if (names.length === 0) {
    throw new Error("--provider needs --chain, for example --chain op,base");
  }
  return names.map((chain) => {
    const nodes = parsed.flatMap(({ name, key, provider: { url, wsUrl, networks } }) => {
      const network = networks[chain];
      const fill = (pattern: string) =>
        pattern.replace("{network}", network ?? "").replace("{key}", encodeURIComponent(key));
      return network === undefined
        ? []
        : [{ name, url: fill(url), ...(wsUrl !== undefined && { wsUrl: fill(wsUrl) }) }];
    });
    if (nodes.length === 0) {
      throw new Error(`--chain: no provider of --provider has ${chain}`);
    }
    return { name: chain, chainId: CHAIN_IDS[chain], nodes };
  });
};
