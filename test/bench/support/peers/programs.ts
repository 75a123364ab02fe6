import type { Program } from "./program.ts";

/** Writes each item of a list, for a configuration. */
export const list = (urls: readonly string[], item: (url: string, index: number) => string): string =>
  urls.map(item).join("");

/** A cache in memory for blocks by hash; the rest as the program's example configuration has it. */
const erpc: Program = {
  name: "erpc",
  path: "/main/evm/1",
  versionArgs: ["--version"],
  configure: (port, urls) => `
logLevel: error
metrics: { enabled: false }
server: { httpHostV4: 127.0.0.1, httpPort: ${port} }
database:
  evmJsonRpcCache:
    connectors: [{ id: memory, driver: memory, memory: { maxItems: 100000 } }]
    policies:
      - { network: "*", method: "*", finality: finalized, connector: memory, ttl: 0 }
      - { network: "*", method: "*", finality: unknown, connector: memory, ttl: 0 }
projects:
  - id: main
    networks: [{ architecture: evm, evm: { chainId: 1 } }]
    upstreams:${list(urls, (url, index) => `\n      - { id: node${index}, endpoint: "${url}", evm: { chainId: 1 } }`)}
`,
  invoke: (file) => ({ args: ["start", "--config", file], env: {} }),
};

const nodecore: Program = {
  name: "nodecore",
  path: "/queries/ethereum",
  versionArgs: ["--version"],
  configure: (port, urls) => `
server: { port: ${port} }
cache:
  receive-timeout: 500ms
  connectors: [{ id: memory, driver: memory, memory: { max-items: 5000 } }]
  policies:
    - { id: blocks, chain: "*", method: "eth_getBlock*", connector-id: memory, finalization-type: none, ttl: 0 }
upstream-config:
  upstreams:${list(urls, (url, index) => `\n    - { id: node${index}, chain: ethereum, connectors: [{ type: json-rpc, url: "${url}" }] }`)}
`,
  invoke: (file) => ({ args: [], env: { NODECORE_CONFIG_PATH: file, LOG_LEVEL: "error" } }),
};

const PROXYD_METHODS = ["eth_chainId", "eth_blockNumber", "eth_call", "eth_getBlockByNumber", "eth_getBlockByHash"];

const proxyd: Program = {
  name: "proxyd",
  path: "/",
  versionArgs: ["--version"],
  configure: (port, urls) => `
[server]
rpc_host = "127.0.0.1"
rpc_port = ${port}
log_level = "error"
[backend]
response_timeout_seconds = 30
[cache]
enabled = true
[backends]
${list(urls, (url, index) => `[backends.node${index}]\nrpc_url = "${url}"\n`)}
[backend_groups.main]
backends = [${urls.map((_, index) => `"node${index}"`).join(", ")}]
[rpc_method_mappings]
${list(PROXYD_METHODS, (method) => `${method} = "main"\n`)}`,
  invoke: (file) => ({ args: [file], env: {} }),
};

/** The peers whose binaries a bench gets as options. */
export const PROGRAMS: readonly Program[] = [erpc, nodecore, proxyd];
