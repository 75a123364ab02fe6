/** A chain by the name that `--chain` takes. It is the name of the chain's endpoint, too. */
export const CHAIN_IDS = {
  ethereum: 1,
  op: 10,
  unichain: 130,
  xlayer: 196,
  worldchain: 480,
  soneium: 1868,
  base: 8453,
  ink: 57_073,
  sepolia: 11_155_111,
  "op-sepolia": 11_155_420,
  "base-sepolia": 84_532,
} as const;

export type ChainName = keyof typeof CHAIN_IDS;

/** The endpoints of a provider. `{key}` is the account's key, `{network}` the provider's name of the chain. */
export interface Provider {
  readonly url: string;
  readonly wsUrl?: string;
  readonly networks: Readonly<Partial<Record<ChainName, string>>>;
  /** Anybody may use these endpoints without a key, at the rate that the provider allows. */
  readonly isPublic?: true;
  /** Largest range of eth_getLogs in blocks that the provider documents. Without it, forebay learns the limit. */
  readonly maxLogBlocks?: number;
  /** The unit in which the provider bills. */
  readonly billing: string;
  readonly source: string;
  /** When the row was checked. */
  readonly checked: `${number}-${number}-${number}`;
}

const byChainId = Object.fromEntries(Object.entries(CHAIN_IDS).map(([name, id]) => [name, `${id}`]));

/** Providers by the name that `--provider` takes. */
export const PROVIDERS: Readonly<Record<string, Provider>> = {
  alchemy: {
    url: "https://{network}.g.alchemy.com/v2/{key}",
    wsUrl: "wss://{network}.g.alchemy.com/v2/{key}",
    networks: {
      ethereum: "eth-mainnet",
      op: "opt-mainnet",
      unichain: "unichain-mainnet",
      worldchain: "worldchain-mainnet",
      soneium: "soneium-mainnet",
      base: "base-mainnet",
      ink: "ink-mainnet",
      sepolia: "eth-sepolia",
      "op-sepolia": "opt-sepolia",
      "base-sepolia": "base-sepolia",
    },
    billing: "compute units",
    source: "github.com/erpc/erpc, thirdparty/alchemy.go",
    checked: "2026-11-22",
  },
  infura: {
    url: "https://{network}.infura.io/v3/{key}",
    wsUrl: "wss://{network}.infura.io/ws/v3/{key}",
    networks: {
      ethereum: "mainnet",
      op: "optimism-mainnet",
      base: "base-mainnet",
      sepolia: "sepolia",
      "op-sepolia": "optimism-sepolia",
      "base-sepolia": "base-sepolia",
    },
    maxLogBlocks: 10_000,
    billing: "credits",
    source: "github.com/erpc/erpc, thirdparty/infura.go",
    checked: "2026-11-22",
  },
  drpc: {
    url: "https://lb.drpc.org/ogrpc?network={network}&dkey={key}",
    wsUrl: "wss://lb.drpc.org/ogws?network={network}&dkey={key}",
    networks: {
      ethereum: "ethereum",
      op: "optimism",
      unichain: "unichain",
      xlayer: "xlayer",
      worldchain: "worldchain",
      soneium: "soneium",
      base: "base",
      ink: "ink",
      sepolia: "sepolia",
      "op-sepolia": "optimism-sepolia",
      "base-sepolia": "base-sepolia",
    },
    maxLogBlocks: 10_000,
    billing: "compute units",
    source: "github.com/erpc/erpc, thirdparty/drpc.go",
    checked: "2026-11-22",
  },
  ankr: {
    url: "https://rpc.ankr.com/{network}/{key}",
    networks: { ethereum: "eth", op: "optimism", xlayer: "xlayer", base: "base" },
    billing: "credits",
    source: "github.com/erpc/erpc, thirdparty/ankr.go",
    checked: "2026-11-22",
  },
  goldsky: {
    url: "https://edge.goldsky.com/standard/evm/{network}?secret={key}",
    networks: byChainId,
    billing: "requests",
    source: "docs.goldsky.com, Edge RPC",
    checked: "2026-11-22",
  },
  thirdweb: {
    url: "https://{network}.rpc.thirdweb.com/{key}",
    networks: byChainId,
    billing: "requests",
    source: "github.com/erpc/erpc, thirdparty/thirdweb.go",
    checked: "2026-11-22",
  },
  dwellir: {
    url: "https://api-{network}.n.dwellir.com/{key}",
    networks: {
      ethereum: "ethereum-mainnet",
      op: "optimism-mainnet-archive",
      unichain: "unichain-mainnet",
      base: "base-mainnet-archive",
      sepolia: "ethereum-sepolia",
      "op-sepolia": "optimism-sepolia",
      "base-sepolia": "base-sepolia-archive",
    },
    billing: "requests",
    source: "github.com/erpc/erpc, thirdparty/dwellir.go",
    checked: "2026-11-22",
  },
  onfinality: {
    url: "https://{network}.api.onfinality.io/rpc?apikey={key}",
    networks: {
      ethereum: "eth",
      op: "optimism",
      unichain: "unichain",
      base: "base",
      sepolia: "eth-sepolia",
      "op-sepolia": "optimism-sepolia",
      "base-sepolia": "base-sepolia",
    },
    billing: "response units",
    source: "github.com/erpc/erpc, thirdparty/onfinality.go",
    checked: "2026-11-22",
  },
  blockpi: {
    url: "https://{network}.blockpi.network/v1/rpc/{key}",
    networks: {
      ethereum: "ethereum",
      op: "optimism",
      unichain: "unichain",
      xlayer: "xlayer",
      base: "base",
      ink: "ink",
      sepolia: "ethereum-sepolia",
      "op-sepolia": "optimism-sepolia",
      "base-sepolia": "base-sepolia",
    },
    billing: "request units",
    source: "github.com/erpc/erpc, thirdparty/blockpi.go",
    checked: "2026-11-22",
  },
  publicnode: {
    url: "https://{network}-rpc.publicnode.com",
    networks: { ethereum: "ethereum", op: "optimism", base: "base", sepolia: "ethereum-sepolia" },
    isPublic: true,
    maxLogBlocks: 50_000,
    billing: "free, at a limited rate",
    source: "public repositories that use these URLs",
    checked: "2026-11-22",
  },
};

/** The part of a provider's URL that comes before, and after, the name of the network. */
const hostParts = (url: string): readonly [string, string] => {
  const [, authority = ""] = /^https:\/\/([^/]+)/.exec(url) ?? [];
  const [before = "", after] = authority.split("{network}");
  return [before, after ?? ""];
};

const HOSTS = Object.entries(PROVIDERS).map(([name, { url }]) => ({ name, parts: hostParts(url) }));

const providerOf = (host: string): string | undefined =>
  HOSTS.find(({ parts: [before, after] }) =>
    after === "" ? host === before : host.startsWith(before) && host.endsWith(after),
  )?.name;

/** Returns who runs a node: the configured provider, else the name of a known provider, else host and port of the URL. */
export const originOf = ({
  provider,
  url,
}: {
  readonly provider?: string | undefined;
  readonly url: string;
}): string => {
  const { hostname, port } = new URL(url);
  // A dot at the end makes a name absolute (RFC 1034, section 3.1). It is the same name.
  const name = hostname.replace(/\.$/, "");
  return provider ?? providerOf(name) ?? (port === "" ? name : `${name}:${port}`);
};
