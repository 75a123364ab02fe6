import type { Program } from "../../bench/support/peers/program.ts";
import { list, PROGRAMS } from "../../bench/support/peers/programs.ts";

/** The methods that the clients of the suite call. proxyd and the cache of nodecore need them by name. */
const METHODS = [
  ...["eth_blockNumber", "eth_chainId", "eth_getBlockByNumber", "eth_getBlockByHash", "eth_getBlockReceipts"],
  ...["eth_getBlockTransactionCountByNumber", "eth_getTransactionByBlockNumberAndIndex", "eth_getTransactionByHash"],
  ...["eth_getTransactionReceipt", "eth_getLogs", "eth_getBalance", "eth_getTransactionCount", "eth_getStorageAt"],
  ...["eth_getCode", "eth_call", "eth_newFilter", "eth_newBlockFilter", "eth_getFilterChanges"],
];

/**
 * Cache by finality, integrity, and consensus of two of three nodes.
 * Sources: https://docs.erpc.cloud/config/failsafe/consensus, https://docs.erpc.cloud/config/failsafe/integrity
 * and https://docs.erpc.cloud/config/database/evm-json-rpc-cache. The poller's period is that of the chain's blocks.
 */
const erpc = (port: number, urls: readonly string[]): string => `
logLevel: error
metrics: { enabled: false }
server: { httpHostV4: 127.0.0.1, httpPort: ${port} }
database:
  evmJsonRpcCache:
    connectors: [{ id: memory, driver: memory, memory: { maxItems: 100000 } }]
    policies:
      - { network: "*", method: "*", finality: finalized, empty: ignore, connector: memory, ttl: 0 }
      - { network: "*", method: "*", finality: unfinalized, empty: ignore, connector: memory, ttl: 5s }
      - { network: "*", method: "*", finality: realtime, empty: ignore, connector: memory, ttl: 1s }
projects:
  - id: main
    networks:
      - architecture: evm
        evm: { chainId: 1, integrity: { enforceHighestBlock: true, enforceGetLogsBlockRange: true } }
        directiveDefaults:
          retryEmpty: true
          validateLogsBloomEmptiness: true
          validateLogsBloomMatch: true
          enforceLogIndexStrictIncrements: true
        failsafe:
          - matchMethod: "*"
            timeout: { duration: 10s }
            retry: { maxAttempts: 4, delay: 0, emptyResultAccept: ["eth_getLogs", "eth_call"] }
            hedge: { delay: 500ms, maxCount: 1 }
            consensus:
              maxParticipants: 3
              agreementThreshold: 2
              disputeBehavior: returnError
              lowParticipantsBehavior: acceptMostCommonValidResult
              preferNonEmpty: true
              preferLargerResponses: true
    upstreams:${list(urls, (url, index) => `\n      - { id: node${index}, endpoint: "${url}", evm: { chainId: 1, statePollerInterval: 1s, statePollerDebounce: 500ms } }`)}
`;

/**
 * Integrity, hedging, and a cache of final blocks. Its quorum needs upstreams of one provider.
 * Source: https://github.com/drpcorg/nodecore/tree/main/docs/nodecore, pages cache, upstream-config and quorum.
 */
const nodecore = (port: number, urls: readonly string[]): string => `
server: { port: ${port} }
cache:
  receive-timeout: 500ms
  connectors: [{ id: memory, driver: memory, memory: { max-items: 5000 } }]
  policies:
    - { id: final, chain: "*", method: "*", connector-id: memory, finalization-type: finalized, ttl: 0 }
upstream-config:
  integrity: { enabled: true }
  failsafe-config:
    retry: { attempts: 4, delay: 100ms, max-delay: 1s }
    hedge: { delay: 500ms, max: 2 }
  chain-defaults:
    ethereum: { poll-interval: 1s }
  upstreams:${list(urls, (url, index) => `\n    - { id: node${index}, chain: ethereum, connectors: [{ type: json-rpc, url: "${url}" }] }`)}
`;

/**
 * Consensus awareness and the cache of immutable responses.
 * Source: https://github.com/ethereum-optimism/infra/tree/main/proxyd, its README and its example configuration.
 */
const proxyd = (port: number, urls: readonly string[]): string => `
[server]
rpc_host = "127.0.0.1"
rpc_port = ${port}
log_level = "error"
[backend]
response_timeout_seconds = 5
max_retries = 3
[cache]
enabled = true
[backends]
${list(urls, (url, index) => `[backends.node${index}]\nrpc_url = "${url}"\n`)}
[backend_groups.main]
backends = [${urls.map((_, index) => `"node${index}"`).join(", ")}]
routing_strategy = "consensus_aware"
consensus_poller_interval = "1s"
consensus_max_block_lag = 8
consensus_min_peer_count = 3
[rpc_method_mappings]
${list(METHODS, (method) => `${method} = "main"\n`)}`;

const CONFIGURATIONS: Readonly<Record<string, Program["configure"]>> = { erpc, nodecore, proxyd };

/** The peers of `bench peers`, with what their documentation recommends for true answers. */
export const TRUTH_PROGRAMS: readonly Program[] = PROGRAMS.map((program) => ({
  ...program,
  configure: CONFIGURATIONS[program.name] ?? program.configure,
}));
