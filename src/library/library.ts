import { createOpsServer } from "../admin/opsServer.ts";
import type { Ports } from "../app/main.ts";
import { startForebay } from "../app/startForebay.ts";
import { ConfigError, readConfigObject } from "../config/readConfig.ts";
import type { ConfigInput } from "../config/schema.ts";
import type { Endpoint } from "../http/endpoint.ts";
import { HttpServer } from "../http/httpServer.ts";
import { OwnRequests } from "./ownRequests.ts";
import { closedError, type EthereumProvider, ProviderRpcError } from "./provider.ts";

export type { ConfigInput as ForebayConfig } from "../config/schema.ts";
export type { EthereumProvider, RequestArguments } from "./provider.ts";
export { ConfigError, ProviderRpcError };

/** forebay in the process of another program. */
export interface ForebayLibrary extends EthereumProvider {
  /** The names of the configured chains. */
  readonly chains: readonly string[];
  /** Resolves when every chain has its genesis and a first head. A chain without a node that responds never has. */
  readonly ready: Promise<void>;
  /** The URL of the port for clients. Undefined unless `server.port` is configured. */
  readonly url: string | undefined;
  /** The URL of the ops port. Undefined unless `server.opsPort` is configured. */
  readonly opsUrl: string | undefined;
  /** Returns the provider of the chain with this name or chain id. Its requests reject if there is no such chain. */
  chain(nameOrId: string | number): EthereumProvider;
  /** Sends a request of the only chain. Rejects if several chains are configured: see `chain`. */
  request: EthereumProvider["request"];
  /** Answers JSON-RPC by POST as the HTTP server does: the same paths, headers, API keys, limits and batches. */
  fetch(request: Request): Promise<Response>;
  /** Ends requests in flight, stores what is known, and closes connections, threads and ports. */
  close(): Promise<void>;
}

/** The ports that are configured. The library opens no other port. */
interface OpenPorts {
  readonly hasPort: boolean;
  readonly hasOpsPort: boolean;
}

const openPortsOf = ({ server }: ConfigInput): OpenPorts => ({
  hasPort: server?.port !== undefined,
  hasOpsPort: server?.opsPort !== undefined,
});

/** The longest period of a timer. */
const LONG_MS = 2 ** 31 - 1;

/** In the place of the ops port, which closes last: holds the process as a port does. Threads and most timers do not. */
const holdProcess: typeof createOpsServer = async ({ port }) => {
  const timer = setInterval(() => undefined, LONG_MS);
  return { port, close: async () => clearInterval(timer) };
};

/** Opens no port that is not configured. `onHttp` gets the HTTP server. */
const createPorts = ({ hasPort, hasOpsPort }: OpenPorts, onHttp: (http: HttpServer) => void): Ports => ({
  openHttp: async (options) => {
    const http = hasPort ? await HttpServer.listen(options) : new HttpServer(options);
    onHttp(http);
    return http;
  },
  openOps: hasOpsPort ? createOpsServer : holdProcess,
});

/**
 * Starts forebay in this process. `raw` has the options of the configuration file. Rejects with ConfigError if it is invalid,
 * and with another error if a configured port cannot be opened. Does not wait for the nodes: see `ready`.
 */
export const createForebay = async (raw: ConfigInput): Promise<ForebayLibrary> => {
  const config = readConfigObject(raw, process.env);
  const { promise, resolve } = Promise.withResolvers<HttpServer>();
  const ports = openPortsOf(raw);
  const { forebay } = await startForebay(config, createPorts(ports, resolve));
  try {
    await forebay.listening;
  } catch (error) {
    await forebay.close();
    throw error;
  }
  const http = await promise;
  const own = new OwnRequests();
  const chains = config.chains.map(({ name }) => name);
  const endpointOf = (path: string, reason: string): Endpoint => {
    const endpoint = http.endpointOf(path);
    if (endpoint === undefined) {
      throw new ProviderRpcError(UNKNOWN_CHAIN, `${reason}; configured chains: ${chains.join(", ")}`);
    }
    return endpoint;
  };
  const providerOf = (path: string, reason: string): EthereumProvider => own.provider(() => endpointOf(path, reason));
  let closed: Promise<void> | undefined;
  return {
    chains,
    ready: forebay.ready,
    url: ports.hasPort ? forebay.url : undefined,
    opsUrl: ports.hasOpsPort ? forebay.opsUrl : undefined,
    request: providerOf("/", "several chains are configured: use chain(name).request").request,
    chain: (nameOrId) => providerOf(`/${nameOrId}`, `no chain has the name or chain id ${nameOrId}`),
    fetch: async (request) => {
      if (closed !== undefined) {
        throw closedError();
      }
      return http.fetch(request);
    },
    close: () => {
      own.close();
      closed ??= forebay.close();
      return closed;
    },
  };
};

/** EIP-1193, "Provider Errors": the provider is not connected to the requested chain. */
const UNKNOWN_CHAIN = 4901;
