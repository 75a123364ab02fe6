import type { Endpoint } from "../http/endpoint.ts";

/** A chain as far as routing concerns it. */
export interface RoutedChain {
  readonly config: { readonly name: string };
  /** Undefined until a node has returned it, if it is not configured. */
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
  for (const { config, endpoint } of chains) {
    if (chains.length === 1) {
      routes.set("/", endpoint);
    }
    routes.set(`/${config.name}`, endpoint);
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
