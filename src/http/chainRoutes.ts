import type { Endpoint } from "./endpoint.ts";

/** A chain as its paths need it. `chainId`: undefined if neither its nodes nor the configuration have said it. */
interface RoutedChain {
  readonly name: string;
  readonly chainId: bigint | number | undefined;
  readonly endpoint: Endpoint;
}

export interface ChainRoutes<C> {
  readonly routes: ReadonlyMap<string, Endpoint>;
  /** Chains without a path of their chain id, because an earlier chain has the same id. */
  readonly shadowed: readonly { readonly chain: C; readonly path: string }[];
}

/** Returns the paths of all chains: `/<name>`, `/<chainId>`, and `/` if there is only one chain. */
export const createChainRoutes = <C extends RoutedChain>(chains: readonly C[]): ChainRoutes<C> => {
  const routes = new Map<string, Endpoint>();
  const shadowed: { chain: C; path: string }[] = [];
  for (const { name, endpoint } of chains) {
    if (chains.length === 1) {
      routes.set("/", endpoint);
    }
    routes.set(`/${name}`, endpoint);
  }
  for (const chain of chains) {
    if (chain.chainId === undefined) {
      continue;
    }
    const path = `/${chain.chainId}`;
    const existing = routes.get(path);
    if (existing === undefined) {
      routes.set(path, chain.endpoint);
    } else if (existing !== chain.endpoint) {
      shadowed.push({ chain, path });
    }
  }
  return { routes, shadowed };
};

/** Returns the JSON text of the page that describes the service. The chain id of a chain that is not known yet is left out. */
export const formatAbout = (
  chains: readonly (Omit<RoutedChain, "endpoint"> & { readonly isKnown: boolean })[],
): string =>
  JSON.stringify({
    name: "forebay",
    about: "JSON-RPC by POST and WebSocket",
    chains: chains.map(({ name, isKnown, chainId }) => ({
      name,
      path: chains.length === 1 ? "/" : `/${name}`,
      ...(isKnown && { chainId: Number(chainId) }),
    })),
  });
